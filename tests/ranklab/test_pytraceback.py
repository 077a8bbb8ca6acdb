"""Tracebacks in text: cut to the reader's lines, whoever put what before them."""

from ranklab.launch.pytraceback import find, quiet

LIBRARY = "/".join(["", "opt", "lib", "python3.11", "site-packages"])
PLAIN = f"""\
some warning
Traceback (most recent call last):
  File "/place/scripts/train.py", line 12, in <module>
    main()
    ^^^^^^
  File "/place/scripts/train.py", line 9, in main
    dist.all_reduce(total)
  File "{LIBRARY}/torch/distributed/c10d_logger.py", line 83, in wrapper
    return func(*args, **kwargs)
RuntimeError: [/build/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:23448.
"""
LINES = ["train.py line 12:  main()", "train.py line 9 in main:  dist.all_reduce(total)"]
ERROR = "RuntimeError: [gloo] Connection closed by peer [127.0.0.1]."


def test_the_readers_lines_are_kept_without_paths_and_ports():
    raised = find(PLAIN)
    assert raised.lines == [*LINES, ERROR]
    assert (raised.error, raised.before) == (ERROR, "some warning")


def test_the_rank_that_torch_puts_before_each_line_is_left_out():
    prefixed = "".join(f"[rank0]: {line}\n" for line in PLAIN.splitlines()[1:])
    assert find(prefixed).lines == find(PLAIN).lines


def test_the_last_of_several_counts():
    chained = PLAIN + "\nDuring handling of the above exception, another exception occurred:\n\n"
    chained += "Traceback (most recent call last):\n  File \"/a/b.py\", line 3, in <module>\n    x\nKeyError: 'lr'\n"
    assert find(chained).lines == ["b.py line 3:  x", "KeyError: 'lr'"]


def test_a_message_of_several_lines_is_kept():
    text = 'Traceback (most recent call last):\n  File "/a/b.py", line 3, in f\n    x\nValueError: one\ntwo\n'
    assert find(text).lines == ["b.py line 3 in f:  x", "ValueError: one", "two"]


def test_a_file_that_does_not_compile_has_a_line():
    text = "  File \"/a/b.py\", line 2\n    print(x\n         ^\nSyntaxError: '(' was never closed\n"
    assert find(text).lines == ["b.py line 2:  print(x", "SyntaxError: '(' was never closed"]


def test_a_frame_without_source_and_a_text_without_error():
    frames = '  File "/a/b.py", line 3, in f\n  File "/a/b.py", line 9, in g\n'
    text = f"Traceback (most recent call last):\n{frames}KeyError: 1"
    assert find(text).lines[:2] == ["b.py line 3 in f", "b.py line 9 in g"]
    assert find("nothing of the kind") is None
    assert find("Traceback (most recent call last):\n  File") is None


def test_the_log_of_compiled_code_is_left_out():
    text = "[W1121 08:18:22.437000000 socket.cpp:207] no name\nkept\n[rank1]:[E1121 08:18:22.437000000 x.cpp:1] y\n"
    assert quiet(text) == "kept\n"
