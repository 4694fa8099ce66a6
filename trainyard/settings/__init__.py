"""Settings of a stack file, and how it is read.

Modules whose dataclasses pydantic reads do not import `annotations` from `__future__`: their types would
be text, and pydantic would compile each one again in every `trainyard check`, 8 ms in all.
"""
