"""Settings that no job has, and what serves instead."""

TO_S3 = (
    "use a Lustre store whose lustre.repositories export to S3 (only pods of a team with s3_writes can"
    " write there themselves)"
)
_ONE_POD = (
    "drop it: pods ask for whole nodes, so each has its own; with gpus_per_node they may share one"
)
_BY_POOL = "drop it: the pool decides where pods run, and what they tolerate"
_KEPT = (
    "delete it: a job that has ended holds no node, and where Kubernetes had deleted it, the next `pulumi up` would"
    " run it again; a job with schedule has keep_runs, the number of runs that stay"
)
NO_SETTINGS = {
    **dict.fromkeys(
        ("spread", "antiaffinity", "podantiaffinity", "topologyspreadconstraints"), _ONE_POD
    ),
    **dict.fromkeys(("gpus", "gpu", "numgpus", "gpuspernodes"), "did you mean gpus_per_node?"),
    **dict.fromkeys(
        ("backofflimit", "maxrestarts", "restartpolicy", "restarts", "retries"),
        "delete it; write max_restarts of an own runtime, or pytorch_job: {restarts: 3}",
    ),
    **dict.fromkeys(
        ("ttl", "ttlseconds", "ttlminutes", "ttlsecondsafterfinished", "keepfinishedminutes"), _KEPT
    ),
    **dict.fromkeys(
        ("affinity", "nodeselector", "nodeaffinity", "tolerations", "zone", "instancetype"),
        _BY_POOL,
    ),
    **dict.fromkeys(
        ("copyto", "copytos3", "s3", "bucket", "upload", "uploadto", "sync", "syncto"), TO_S3
    ),
}
"""Settings that people look for in a job, in small letters → what serves instead."""
