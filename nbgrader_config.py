# SPDX-License-Identifier: MIT
"""nbgrader's configuration of this course; nbgrader reads it from the course root.

`nbgrader autograde`, formgrader and `autograder grade` all take it, so that they give the same
score.
"""

from pathlib import Path

import nbgrader

import autograder

c = get_config()  # noqa: F821  (nbgrader provides it)

c.CourseDirectory.course_id = "policylab"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"

# Students' code never runs in nbgrader's process: Rebuild puts the submission's cells back into the
# released shape, SandboxGrade writes what the hidden checks gave, SaveGrades records it.  Rebuild
# writes every label itself, so nbgrader's check of labels, a third of the time, is left out.
c.Autograde.sanitize_preprocessors = [
    "autograder.preprocessors.rebuild.Rebuild",
    "nbgrader.preprocessors.OverwriteKernelspec",
]
c.Autograde.autograde_preprocessors = [
    "autograder.preprocessors.sandbox_grade.SandboxGrade",
    "nbgrader.preprocessors.LimitOutput",
    "autograder.preprocessors.save_grades.SaveGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
]

# Feedback: our folder first, as nbgrader asks for the template "feedback".  No template_name here:
# it would take the place of formgrader's "formgrade", too, the page on which answers are marked.
c.GenerateFeedback.preprocessors = ["autograder.preprocessors.show_grades.ShowGrades"]
c.HTMLExporter.extra_template_basedirs = [
    str(Path(autograder.__file__).parent / "templates"),
    str(Path(nbgrader.__file__).parent / "server_extensions/formgrader/templates"),
]
c.TemplateExporter.filters = {
    "plain": "autograder.feedback.plain",
    "highlight_python": "autograder.feedback.highlight_python",
    "markdown2html": "autograder.markdown.render_markdown",  # formgrader's, with raw HTML as text
}

# A stub must say which exercise it belongs to by its traceback alone; students see no other words.
c.ClearSolutions.code_stub = {"python": "raise NotImplementedError  # write your answer here"}
c.ClearSolutions.text_stub = "*Write your answer here.*"
