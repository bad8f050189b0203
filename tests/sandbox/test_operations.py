# SPDX-License-Identifier: MIT
"""The worker's operations on honest code: handles, callbacks, gradients, parameters, mutation."""

import itertools
import time

import pytest
import torch

from policylab.sandbox import Decoder, Encoder, Record
from tests.sandbox.conftest import Box, StudentRaised

torch.set_num_threads(1)
HANDLE = {"h": lambda node: node}


def call(box: Box, op: str, target, *args, special=HANDLE, **fields):
    """Return the decoded value, the reply and the encoder, with handles as their nodes."""
    encoder = Encoder()
    encoded = [encoder.encode(arg) for arg in args]
    message, buffers = box.request(op, buffers=encoder.buffers, t=target, a=encoded, **fields)
    assert "exc" not in message, message
    return Decoder(buffers, special).decode(message["v"]), message, encoder


def test_names_are_looked_up_in_the_notebook_only(box: Box):
    box.load("class A:\n    b = 3\n    def f(self): return self.b\na = A()")
    assert box.call("a.f") == 3 and box.value("value", t="a.b") == 3
    assert box.value("has", n="a") is True and box.value("has", n="len") is False
    for name in ("len", "os.getpid", "missing"):
        with pytest.raises(StudentRaised, match="NameError"):
            box.call(name)


def test_the_notebook_is_main(box: Box):
    source = (
        "import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int\nresult = __name__, P(2)"
    )
    name, point = box.run(source)
    assert name == "__main__" and type(point) is Record and point.x == 2


def test_source_of_a_cell_can_be_inspected(box: Box):
    box.load("def f():\n    return 1", "import inspect\ng = lambda: inspect.getsource(f)")
    assert box.call("g") == "def f():\n    return 1"


def test_objects_stay_and_answer_through_handles(box: Box):
    box.load("class A:\n    x = 1\n    def __getitem__(self, i): return i * 2\na = A()")
    handle, _, _ = call(box, "value", "a")
    assert handle["c"] == "A" and handle["m"] is False
    assert box.value("get", t=handle["id"], n="x") == 1
    assert box.value("item", t=handle["id"], i=21) == 42
    box.value("setattr", t=handle["id"], n="x", v=5)
    assert box.value("value", t="a.x") == 5


def test_iterators_are_read_in_pieces(box: Box):
    box.load("def count():\n    n = 0\n    while True:\n        yield n\n        n += 1")
    handle, _, _ = call(box, "call", "count", k={})
    iterator, _, _ = call(box, "iter", handle["id"])
    assert box.value("next", t=iterator["id"], n=3) == [0, 1, 2]
    assert box.value("next", t=iterator["id"], n=2) == [3, 4]


def test_a_callback_is_answered_here_and_may_call_back(box: Box):
    box.load("def apply(f, x): return f(x) + 1\ndef double(x): return 2 * x")
    worker, deadline = box.worker, time.monotonic() + 10
    callback = {"$": "cb", "id": 5, "n": "ours"}
    worker.send({"op": "call", "id": 90, "t": "apply", "a": [callback, 4], "k": {}}, (), deadline)
    message, _ = worker.recv(deadline)
    assert (message["op"], message["id"], message["a"], message["k"]) == ("cb", 5, [4], {})
    worker.send({"op": "call", "id": 91, "t": "double", "a": [4], "k": {}}, (), deadline)
    assert worker.recv(deadline)[0] == {"id": 91, "v": 8}
    worker.send({"v": 8}, (), deadline)
    assert worker.recv(deadline)[0] == {"id": 90, "v": 9}


def test_an_error_in_a_callback_crosses_by_its_type_only(box: Box):
    box.load("def apply(f):\n    try: f()\n    except Exception as error: return repr(error)")
    worker, deadline = box.worker, time.monotonic() + 10
    worker.send(
        {"op": "call", "id": 1, "t": "apply", "a": [{"$": "cb", "id": 1}], "k": {}}, (), deadline
    )
    worker.recv(deadline)
    worker.send({"err": "AssertionError"}, (), deadline)
    assert worker.recv(deadline)[0]["v"] == "CallbackError('AssertionError')"


def test_what_a_call_changes_in_place_comes_back(torch_box: Box):
    torch_box.load("def f(x, y, *, z):\n    x += 1; y.append(3); z['k'] = 2; return 'done'")
    encoder = Encoder()
    args = [encoder.encode(arg) for arg in (torch.zeros(2), [1])]
    named = {"z": encoder.encode({})}
    value = torch_box.value("call_mutating", buffers=encoder.buffers, t="f", a=args, k=named)
    assert value[0] == "done" and value[1][0].tolist() == [1, 1]
    assert value[1][1] == [1, 3] and value[2] == {"z": {"k": 2}}


def test_a_graph_in_the_worker_answers_for_its_gradients(torch_box: Box):
    torch_box.load("def f(x, w): return (x * w).sum(), x + 1, 'text'")
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    w = torch.tensor([3.0, 4.0], requires_grad=True)
    value, message, encoder = call(torch_box, "call", "f", x, w, k={})
    assert [tensor.requires_grad for tensor in encoder.tensors] == [True, True]
    assert value[0].item() == 11 and value[0].requires_grad and value[2] == "text"
    grads, _, _ = call(
        torch_box, "vjp", 0, torch.tensor(1.0), torch.tensor([10.0, 0.0]), g=message["g"]
    )
    assert [grad.tolist() for grad in grads] == [[13.0, 4.0], [1.0, 2.0]]
    again, _, _ = call(torch_box, "vjp", 0, torch.tensor(2.0), torch.zeros(2), g=message["g"])
    assert [grad.tolist() for grad in again] == [[6.0, 8.0], [2.0, 4.0]]


def test_an_argument_returned_as_it_is_has_its_gradient(torch_box: Box):
    torch_box.load("def f(x): return x")
    value, message, _ = call(torch_box, "call", "f", torch.ones(2, requires_grad=True), k={})
    grads, _, _ = call(torch_box, "vjp", 0, torch.tensor([5.0, 6.0]), g=message["g"])
    assert grads[0].tolist() == [5.0, 6.0]


def test_no_graph_is_kept_where_no_gradient_flows(torch_box: Box):
    torch_box.load("def f(x): return x.detach() * 2")
    _, message, _ = call(torch_box, "call", "f", torch.ones(2, requires_grad=True), k={})
    assert "g" not in message


def test_parameters_can_be_read_and_replaced(torch_box: Box):
    torch_box.load("import torch\nmodel = torch.nn.Linear(2, 1)\nmodel.weight.data.fill_(1.0)")
    handle, _, _ = call(torch_box, "value", "model")
    assert handle["m"] is True
    names = [(name, grad, flag) for name, _, grad, flag in torch_box.value("params", t="model")]
    assert names == [("weight", None, True), ("bias", None, True)]
    weight = torch.tensor([[2.0, 3.0]], requires_grad=True)
    encoder = Encoder()
    parameters = encoder.encode({"weight": weight, "bias": torch.zeros(1)})
    args = [encoder.encode(torch.ones(1, 2))]
    fields = {"t": handle["id"], "p": parameters, "a": args}
    message, buffers = torch_box.request("functional_call", buffers=encoder.buffers, **fields)
    assert Decoder(buffers).decode(message["v"]).item() == 5.0
    grads, _, _ = call(torch_box, "vjp", 0, torch.ones(1, 1), g=message["g"])
    assert grads[0].tolist() == [[1.0, 1.0]]


def test_seeding_reaches_every_global_generator(torch_box: Box):
    torch_box.load(
        "import random, numpy as np, torch\n"
        "def draw(): return random.random(), float(np.random.rand()), torch.rand(1).item()"
    )
    drawn = []
    for seed in (3, 3, 4, 1 << 40):
        torch_box.value("seed", s=seed)
        drawn.append(torch_box.call("draw"))
    assert drawn[0] == drawn[1]
    assert all(
        a != b for one, two in itertools.pairwise(drawn[1:]) for a, b in zip(one, two, strict=True)
    )


def test_a_generator_argument_draws_what_it_would_draw_here(torch_box: Box):
    torch_box.load("import torch\ndef draw(generator): return torch.rand(3, generator=generator)")
    generator = torch.Generator().manual_seed(5)
    value, _, _ = call(torch_box, "call", "draw", generator, k={})
    assert torch.equal(value, torch.rand(3, generator=generator))


def test_an_exception_whose_text_misbehaves_is_still_described(box: Box):
    source = "class E(Exception):\n    def __str__(self): raise SystemExit(1)\nraise E"
    (fault,) = box.load(source)
    assert fault["type"] == "E" and fault["msg"] == "" and fault["frames"][0][:2] == ["c0", 3]


def test_a_warning_or_a_finalizer_in_student_code_breaks_nothing(box: Box):
    source = "import warnings\nwarnings.warn('w')\nclass D:\n    def __del__(self): 1 / 0\nD()"
    assert box.load(source) == [None]
    assert box.run("result = 1") == 1
