"""Questions that were asked once: each module measured one thing for one decision or one sentence of the documentation.

A module runs by itself, as the others do: ``python -m benchmarks.questions.NAME``. Its result is in
``benchmarks/results``, and `benchmarks/README.md` says what was asked. What `make` or a test runs again and again is in
``benchmarks`` itself.
"""
