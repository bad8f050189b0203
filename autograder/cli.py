# SPDX-License-Identifier: MIT
"""The command `autograder`.

Results go to stdout, everything else to stderr.  Exit status: 0 all is well, 1 something needs a
person, 2 wrong use or a fault of the grader.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from autograder.cleaning import clean
from autograder.suggest import did_you_mean

__all__ = ["main"]

EXAMPLES = """\
examples:
  autograder release 02_llm_as_policy            write exercises/, register the assignment
  autograder release 02_llm_as_policy --bundle   and make the zip for students
  autograder grade 02_llm_as_policy              grade all that is in submitted/
  autograder grade 02_llm_as_policy --student ada --json
  autograder feedback 02_llm_as_policy           one page per student, in feedback/
  autograder export 02_llm_as_policy --format moodle > grades.csv
  autograder doctor                              is there a safe sandbox here?
  autograder chapter 03_reward_models --check    what does this chapter still lack?
  autograder demo                                a class of a few submissions, from start to end
"""


class _Parser(argparse.ArgumentParser):
    """An argument parser that guesses which command was meant."""

    def error(self, message: str) -> NoReturn:
        if "invalid choice: " in message:
            given = message.split("invalid choice: ")[1].split(" ")[0].strip("'\"")
            known = [
                name.strip(" '\")") for name in message.partition("choose from ")[2].split(",")
            ]
            message = f"unknown name {given!r}{did_you_mean(given, known)}"
        self.exit(2, f"autograder: {message}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status."""
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.command(arguments))
    except KeyboardInterrupt:
        print("autograder: stopped. What was graded is kept; run again to go on.", file=sys.stderr)
        return 1
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except Exception as error:
        if arguments.debug:
            raise
        print(f"autograder: {clean(str(error), 2000) or type(error).__name__}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="autograder",
        description="Release, grade and give feedback on notebooks; student code runs in a jail.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    _add_release(commands)
    _add_grade(commands)
    _add_feedback(commands)
    _add_export(commands)
    _add_doctor(commands)
    _add_demo(commands)
    _add_chapter(commands)
    return parser


def _add(
    commands: "argparse._SubParsersAction[_Parser]",
    name: str,
    summary: str,
    command: Callable[[argparse.Namespace], int],
    examples: str,
) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name,
        help=summary,
        description=summary,
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--course-root", metavar="FOLDER", help="where nbgrader_config.py lies")
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    parser.set_defaults(command=command)
    return parser


def _add_release(commands: "argparse._SubParsersAction[_Parser]") -> None:
    summary = "make exercises/ from solutions/ and register it in the gradebook"
    examples = "  autograder release 02_llm_as_policy --bundle\n  autograder release --all\n"
    parser = _add(commands, "release", summary, _release, examples)
    parser.add_argument("assignment", nargs="?")
    parser.add_argument("--all", action="store_true", help="every assignment of solutions/")
    parser.add_argument("--bundle", action="store_true", help="also make the students' zip")
    parser.add_argument("--output", metavar="FOLDER", help="of bundles; default _build/bundles")


def _add_grade(commands: "argparse._SubParsersAction[_Parser]") -> None:
    summary = "grade submitted/STUDENT/ASSIGNMENT into the gradebook"
    examples = (
        "  autograder grade 02_llm_as_policy\n"
        "  autograder grade 02_llm_as_policy --student ada --student ben\n"
        "  autograder grade 02_llm_as_policy --new-seed    draw the hidden inputs anew\n"
    )
    parser = _add(commands, "grade", summary, _grade, examples)
    parser.add_argument("assignment")
    parser.add_argument(
        "--student", action="append", default=[], metavar="NAME", help="only this one"
    )
    parser.add_argument(
        "--lanes", type=int, metavar="N", help="submissions at a time (default: cores)"
    )
    parser.add_argument("--new-seed", action="store_true", help="draw the hidden inputs anew")
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")
    parser.add_argument(
        "--unsafe-no-sandbox",
        action="store_true",
        help="run student code with your own rights; marked in every result",
    )


def _add_feedback(commands: "argparse._SubParsersAction[_Parser]") -> None:
    summary = "write feedback/STUDENT/ASSIGNMENT, one page for each student"
    parser = _add(
        commands, "feedback", summary, _feedback, "  autograder feedback 02_llm_as_policy\n"
    )
    parser.add_argument("assignment")
    parser.add_argument(
        "--student", action="append", default=[], metavar="NAME", help="only this one"
    )


def _add_export(commands: "argparse._SubParsersAction[_Parser]") -> None:
    summary = "print the grades, or write them to a file"
    examples = (
        "  autograder export 02_llm_as_policy --format csv > grades.csv\n"
        "  autograder export 02_llm_as_policy --format canvas --output canvas.csv\n"
    )
    parser = _add(commands, "export", summary, _export, examples)
    parser.add_argument("assignment")
    parser.add_argument("--format", choices=("csv", "json", "canvas", "moodle"), default="csv")
    parser.add_argument("--output", metavar="FILE")


def _add_doctor(commands: "argparse._SubParsersAction[_Parser]") -> None:
    summary = "attack the sandbox, and say what works on this machine"
    parser = _add(commands, "doctor", summary, _doctor, "  autograder doctor --json\n")
    parser.add_argument("--json", action="store_true")


def _add_demo(commands: "argparse._SubParsersAction[_Parser]") -> None:
    summary = "release, grade and give feedback on a small class, and compare with what is right"
    parser = _add(commands, "demo", summary, _demo, "  autograder demo --root _build/demo\n")
    parser.add_argument("--root", metavar="FOLDER", help="default _build/demo; made anew each time")
    parser.add_argument("--json", action="store_true")


def _add_chapter(commands: "argparse._SubParsersAction[_Parser]") -> None:
    summary = "lay out a new chapter of the course, or say what one still lacks"
    examples = (
        '  autograder chapter 03_reward_models --title "Reward models" \\\n'
        "      --functions preference_probability,bradley_terry_loss --dry-run\n"
        "  autograder chapter 03_reward_models --check\n"
    )
    parser = _add(commands, "chapter", summary, _chapter, examples)
    parser.add_argument("name", metavar="NN_slug")
    parser.add_argument("--title", default="", help='for people, such as "Reward models"')
    parser.add_argument(
        "--functions", default="", metavar="A,B", help="graded functions, in order of the exercises"
    )
    parser.add_argument(
        "--module", metavar="NAME", help="of policylab, made with a stub of each missing function"
    )
    parser.add_argument("--dry-run", action="store_true", help="list the files, write nothing")
    parser.add_argument("--check", action="store_true", help="say what the chapter lacks")
    parser.add_argument("--json", action="store_true")


# Commands import what they need: nbgrader alone takes seconds, and --help should not.


def _release(arguments: argparse.Namespace) -> int:
    from autograder.bundle import make_bundle
    from autograder.course import CourseError, find_course
    from autograder.release import release

    course = find_course(arguments.course_root)
    if bool(arguments.assignment) == arguments.all:
        raise CourseError("name one assignment, or say --all")
    for name in course.assignments() if arguments.all else [arguments.assignment]:
        print(release(course, name))
        if arguments.bundle:
            folder = Path(arguments.output or course.root / "_build" / "bundles")
            print(make_bundle(course, name, folder))
    return 0


def _grade(arguments: argparse.Namespace) -> int:
    from autograder.course import CourseError, find_course
    from autograder.grade import grade_assignment
    from autograder.progress import show_progress
    from autograder.tables import grade_json, grade_table, print_table

    if arguments.lanes is not None and arguments.lanes < 1:
        raise CourseError(f"--lanes must be at least 1; got {arguments.lanes}")
    course = find_course(arguments.course_root)
    with show_progress() as progress:
        rows = grade_assignment(
            course,
            arguments.assignment,
            students=arguments.student,
            lanes=arguments.lanes,
            fresh_seed=arguments.new_seed,
            unsafe_no_sandbox=arguments.unsafe_no_sandbox,
            progress=progress,
        )
    if arguments.json:
        print(grade_json(arguments.assignment, rows))
    else:
        print_table(grade_table(rows))
        print(f"log of nbgrader: {course.state / 'nbgrader.log'}", file=sys.stderr)
    return int(any(row.status != "graded" for row in rows))


def _feedback(arguments: argparse.Namespace) -> int:
    from autograder.course import find_course
    from autograder.feedback import make_feedback

    course = find_course(arguments.course_root)
    pages, failures = make_feedback(course, arguments.assignment, arguments.student)
    for page in pages:
        print(page)
    for failure in failures:
        print(f"autograder: no feedback for {clean(failure, 500)}", file=sys.stderr)
    return int(bool(failures))


def _export(arguments: argparse.Namespace) -> int:
    from autograder.course import find_course
    from autograder.export import render
    from autograder.gradebook import read_grades

    course = find_course(arguments.course_root)
    course.require_assignment(arguments.assignment)
    text = render(arguments.format, arguments.assignment, read_grades(course, arguments.assignment))
    if arguments.output:
        Path(arguments.output).write_text(text, encoding="utf-8")
        print(arguments.output)
    else:
        print(text, end="")
    return 0


def _doctor(arguments: argparse.Namespace) -> int:
    from autograder.doctor import examine, to_json, to_text

    report = examine(arguments.course_root)
    print(to_json(report) if arguments.json else to_text(report))
    return int(not report.is_safe)


def _demo(arguments: argparse.Namespace) -> int:
    from autograder.demo import run_demo

    return run_demo(root=arguments.root, course_root=arguments.course_root, as_json=arguments.json)


def _chapter(arguments: argparse.Namespace) -> int:
    from autograder.chapter.report import check_chapter, new_chapter
    from autograder.course import find_course

    root = find_course(arguments.course_root).root
    if arguments.check:
        return check_chapter(root, arguments.name, as_json=arguments.json)
    return new_chapter(
        root,
        arguments.name,
        title=arguments.title,
        functions=arguments.functions.replace(",", " ").split(),
        module=arguments.module,
        is_dry_run=arguments.dry_run,
        as_json=arguments.json,
    )


if __name__ == "__main__":
    sys.exit(main())
