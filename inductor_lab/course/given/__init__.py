"""What the labs give to students: programs, types and tools, and no answers.

The process of a student's code imports these modules.  The judges (`course/labs`), with their
references and cases, are not readable there when a lab is graded.
"""
