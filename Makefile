# The everyday commands. Each assumes the project's virtual environment is active (see README.md).
.PHONY: test slow lint format types bench table1 figures check

test:      ## tests and doctests
	python -m pytest
slow:      ## long studies
	python -m pytest -m slow
lint:
	ruff check . && ruff format --check .
format:
	ruff check --fix . && ruff format .
types:
	mypy
bench:     ## ratios, slopes, memory and time to a verdict (minutes); benchmarks/README.md
	python -m benchmarks
table1:    ## Table 1 of the paper
	python -m dpsmc_audit +sweep=table1
figures:   ## every figure in figures/ and the reference results behind it
	python -m experiments.table1
	python -m experiments.figure1
	python -m experiments.counterexample
	python -m experiments.attack
	python -m experiments.dpsprt
	python -m experiments.calibration
check: lint types test
