"""Times tpc on workloads made of custom Functions, beside hand-written NumPy and PyTorch, all in one run."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]


def main() -> int:
    if sys.argv[1:2] == ["--worker"]:
        import worker

        worker.main(*sys.argv[2:])
        return 0
    import measures
    import peers
    import rounds
    import table

    available = {path.stem: path for path in sorted((HERE / "workloads").glob("*.py")) if path.stem != "functions"}
    names = [*available, *measures.ALL]
    options = arguments(names)
    if options.list:
        for name, path in available.items():
            print(f"{name:10} {path.read_text().split('.')[0].partition(':')[2].strip() or path.stem}")
        for name, measure in measures.ALL.items():
            print(f"{name:10} {measure.__doc__}")
        return 0
    if options.threads:
        peers.limit_threads(options.threads)
    chosen = options.only or names
    known = peers.find(options.torch_python)
    wanted = options.peers or [p.name for p in known if p.mode != "compile"]
    taken = [p for p in known if p.name == "NumPy" or any(p.name.startswith(w) for w in wanted)]
    rows, costs = [], []
    for name in chosen:
        if name in measures.ALL:
            found = measures.ALL[name](taken, options.rounds)
            costs += found
            table.print_costs(name, found)
        else:
            made = rounds.run(name, taken, options.rounds, options.seconds)
            rows += made
            table.print_rows(made, first=len(rows) == len(made))
    if options.json:
        Path(options.json).write_text(json.dumps(table.as_json(rows, costs), indent=1) + "\n")
    return 1 if any(row.error for row in rows) else 0


def arguments(names: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("tools/bench", description=__doc__)
    parser.add_argument("--list", action="store_true", help="print the workloads and stop")
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help="run these workloads alone")
    parser.add_argument("--peers", nargs="+", metavar="PEER", help="peers by the beginning of their names (default: all but torch.compile)")
    parser.add_argument("--rounds", type=int, default=7, help="how often each workload goes through all peers (default: 7)")
    parser.add_argument("--seconds", type=float, default=0.2, help="time that a peer has in one round (default: 0.2)")
    parser.add_argument("--threads", type=int, metavar="N", help="threads of every peer (default: what each takes by itself)")
    parser.add_argument("--torch-python", metavar="PATH", help="a Python that has PyTorch, if this one has not")
    parser.add_argument("--json", metavar="FILE", help="write all numbers to FILE too")
    return parser.parse_args()


sys.exit(main())
