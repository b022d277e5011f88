"""Small defects put in on purpose: each must turn named tests red, or those tests are worth nothing.

`make sabotage` runs them all; `python -m tests.sabotage NAME…` some. A defect lives in `defects/` as
old text and new text of one file, and is applied to a throw-away copy, never to the checkout.
"""
