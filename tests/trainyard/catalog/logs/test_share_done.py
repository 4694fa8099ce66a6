"""Lines of logs that say which part of a training is done."""

from __future__ import annotations

import pytest

from trainyard.catalog.logs.share_done import done, epochs_said

LINES: dict[str, tuple[str, float | None, float | None]] = {
    "people": ("step 43/100 loss 2.1", None, 0.43),
    "people in brackets": ("Epoch [1], Step [250/1,000], Loss: 2.3", None, 0.25),
    "people in words": ("INFO:root:step 5 of 20", None, 0.25),
    "Megatron": (
        " iteration      300/    1000 | consumed samples:       9600 | elapsed time per iteration",
        None,
        0.3,
    ),
    "tqdm": (" 43%|████▎     | 430/1000 [12:01<15:56,  1.68s/it]", None, 0.43),
    "tqdm, drawn twice": (
        " 10%|█         | 100/1000 [01:01<09:56,  1.68s/it]\r 20%|██        | 200/1000 [02:01<",
        None,
        0.2,
    ),
    "transformers": (
        "{'loss': 6.13, 'grad_norm': 1.2, 'learning_rate': 4e-05, 'epoch': 0.75}",
        3,
        0.25,
    ),
    "transformers 5": ("{'loss': '6.13', 'epoch': '1.5'}", 3, 0.5),
    "transformers, nobody knows of how many": ("{'loss': '6.13', 'epoch': '1.5'}", None, None),
    "Lightning": ("Epoch 3:  50%|█████     | 50/100 [00:10<00:10,  4.9it/s, v_num=0]", 7, 0.5),
    "Lightning, nobody knows of how many": ("Epoch 3:  50%|█████     | 50/100 [00:10<", None, None),
    "Lightning's rich bar": ("Epoch 1/3  ━━━━━╸━━━━ 50/100 0:00:10 • 0:00:10", None, 0.375),
    "a bar of something else": ("Map: 100%|██████████| 52002/52002 [00:10<00:00]", None, None),
    "a loss": ("step 43 loss 2.1", None, None),
    "a path": ("saved /checkpoints/step-43/100", None, None),
    "nothing of nothing": ("step 0/0", None, None),
}


@pytest.mark.parametrize("case", LINES)
def test_a_line_says_the_part_of_the_whole_training(case: str) -> None:
    line, epochs, share = LINES[case]
    found = done(line, epochs)
    assert (found and found.share) == (pytest.approx(share) if share is not None else None)


@pytest.mark.parametrize(
    ("text", "epochs"),
    [
        ("torchrun train.py --num_train_epochs 3 --bf16", 3),
        ("train.py --trainer.max_epochs=10", 10),
        ("  Num Epochs = 1,200", 1200),
        ("train.py --epochs=1.5.", 1.5),
        ("train.py --num_train_epochs 3 --max_steps 500", None),
        ("train.py --num_train_epochs 3 --max_steps -1", 3),
        ("train.py", None),
    ],
)
def test_the_number_of_epochs_is_that_of_the_arguments_or_the_log(
    text: str, epochs: float | None
) -> None:
    assert epochs_said(["begins", text]) == epochs
