"""What a user types becomes a target, or an error that says what was wrong with it."""

import sys
from pathlib import Path

import pytest
import torch

import gnomon as gn
from gnomon.audit.resolve import resolve
from gnomon.errors import BadInput, BadValue

STUDENT = """
import torch
from torch import nn
from gnomon.audit import Torch

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(11, 4), nn.Linear(4, 11)

    def forward(self, ids):
        return self.head(self.table(ids))

def needs(vocab, width): ...
def nothing(): Model()
def number(): return 5
def breaks(): raise RuntimeError("out of ideas")
def described(): return Torch(Model(), name="described")
def function(): return lambda ids: nn.functional.one_hot(ids, 11).float()

ready, five = Model(), 5
"""


@pytest.fixture
def student(tmp_path, monkeypatch):
    (tmp_path / "a_student.py").write_text(STUDENT)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("a_student", None)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return gn.DecoderOnly(64, 32, 2, 4, position="rope", init_std=0.3, max_positions=64).eval()


IDS = torch.tensor([[1, 2, 3, 4]])


def same(target, model):
    with torch.no_grad():
        return torch.allclose(target.logits(IDS), model(IDS), atol=1e-4)


@pytest.mark.parametrize("through", [None, "gnomon", "transformers"])
def test_a_run_folder_is_the_model_in_it_through_either_library(tmp_path, model, through):
    gn.save_model(model, tmp_path / "run")
    target = resolve(str(tmp_path / "run"), through)
    assert same(target, model)
    assert type(target).__name__ == ("Transformers" if through == "transformers" else "Gnomon")


@pytest.mark.parametrize("through", [None, "transformers"])
def test_a_hugging_face_folder_is_the_model_in_it_through_either_library(tmp_path, model, through):
    gn.save_hf(model, tmp_path / "hf")
    assert same(resolve(str(tmp_path / "hf"), through), model)


def test_a_checkpoint_is_computed_in_float32(tmp_path, model):
    gn.save_model(model.bfloat16(), tmp_path / "run")
    assert resolve(str(tmp_path / "run")).dtype == torch.float32


def test_transformers_has_no_class_for_a_model_that_no_family_describes(tmp_path):
    gn.save_model(gn.DecoderOnly(64, 32, 2, 4, position="sinusoidal"), tmp_path / "run")
    with pytest.raises(BadInput, match="no model that transformers has a class for"):
        resolve(str(tmp_path / "run"), "transformers")


def test_a_class_that_transformers_does_not_have_is_named(tmp_path, model):
    gn.save_hf(model, tmp_path / "hf")
    config = tmp_path / "hf" / "config.json"
    config.write_text(config.read_text().replace("ForCausalLM", "ForPoetry"))
    with pytest.raises(BadInput, match=r"has no class \w+ForPoetry.*module:callable"):
        resolve(str(tmp_path / "hf"), "transformers")


def test_a_family_that_we_do_not_know_may_be_asked_through_transformers(tmp_path, model):
    gn.save_hf(model, tmp_path / "hf")
    config = tmp_path / "hf" / "config.json"
    config.write_text(config.read_text().replace('"model_type": "', '"model_type": "neo'))
    with pytest.raises(BadInput, match=r"model_type.*--with transformers"):
        resolve(str(tmp_path / "hf"))


def test_who_has_no_transformers_is_told_what_to_install(tmp_path, model, monkeypatch):
    gn.save_hf(model, tmp_path / "hf")
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(BadInput, match="pip install transformers"):
        resolve(str(tmp_path / "hf"), "transformers")


@pytest.mark.parametrize("what", ["Model", "described", "function", "ready"])
@pytest.mark.parametrize("where", ["a_student", "a_student.py", "./a_student.py"])
def test_a_callable_gives_a_model_a_target_or_a_function(student, where, what):
    target = resolve(f"{where}:{what}")
    with torch.no_grad():
        assert target.logits(IDS).shape == (1, 4, 11)
    assert target.name == ("described" if what == "described" else f"{where}:{what}")


def test_the_same_seed_draws_the_same_model(student):
    first, again, other = (resolve("a_student:Model", seed=seed) for seed in (3, 3, 4))
    with torch.no_grad():
        assert torch.equal(first.logits(IDS), again.logits(IDS))
        assert not torch.equal(first.logits(IDS), other.logits(IDS))


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("a_student:needs", BadValue, "cannot be called without vocab and width"),
        ("a_student:nothing", BadValue, "returned nothing.*return model"),
        ("a_student:number", BadValue, "returned int"),
        ("a_student:five", BadValue, "is int 5"),
        ("a_student:breaks", BadInput, "raised RuntimeError: out of ideas"),
        ("a_student:Modle", BadValue, "did you mean 'Model'"),
        ("no_such_student:Model", BadValue, "there is no module no_such_student"),
        ("no_such_student.py:Model", BadValue, "there is no file no_such_student.py"),
        ("torn:Model", BadInput, "torn needs no_such_library, which is not installed"),
        ("torn.py:Model", BadInput, "needs no_such_library"),
        ("broken:Model", BadInput, "importing broken raised ZeroDivisionError"),
        ("no_such_run", BadInput, "no_such_run"),
    ],
)
def test_what_cannot_be_a_model_says_why(student, text, kind, says):
    (student / "torn.py").write_text("import no_such_library")
    (student / "broken.py").write_text("1 / 0")
    with pytest.raises(kind, match=says):
        resolve(text)


@pytest.mark.parametrize("text", ["a_student.py", "a_student.py:"])
def test_a_file_alone_names_what_can_be_called_in_it(student, text):
    with pytest.raises(BadValue) as said:
        resolve(text)
    ready = ["Model", "ready", "nothing", "number", "breaks", "described", "function"]
    assert str(said.value).endswith(": " + ", ".join(f"a_student.py:{name}" for name in ready))
    (student / "parts.py").write_text("from torch import nn\nclass Part(nn.Module):\n    def __init__(self, d): ...\n")
    with pytest.raises(BadValue, match=r"parts\.py:Part$"):
        resolve("parts.py")
    with pytest.raises(BadValue, match=r"there is no file nowhere\.py"):
        resolve("nowhere.py")


def test_an_unknown_name_is_one_of_the_file_and_names_only_what_the_file_defines(student):
    with pytest.raises(BadValue) as said:
        resolve("a_student.py:Nodel")
    assert "in a_student.py 'Nodel': did you mean 'Model'" in str(said.value)
    assert str(said.value).endswith("Known: Model, breaks, described, function, needs, nothing, number, ready")


def test_what_an_import_or_a_constructor_raises_is_told_with_its_line(student):
    (student / "broken.py").write_text("import torch\n1 / 0")
    with pytest.raises(BadInput, match=r"ZeroDivisionError: division by zero, at broken\.py:2$"):
        resolve("broken.py:Model")
    line = STUDENT.splitlines().index('def breaks(): raise RuntimeError("out of ideas")') + 1
    with pytest.raises(BadInput, match=rf"out of ideas, at a_student\.py:{line}$"):
        resolve("a_student.py:breaks")


def test_a_callable_is_asked_as_it_is(student):
    with pytest.raises(BadValue, match="--with is for checkpoints"):
        resolve("a_student:Model", "transformers")


def test_an_unknown_library_is_an_error():
    with pytest.raises(BadValue, match="did you mean 'transformers'"):
        resolve("anything", "transformer")


def test_where_modules_are_looked_for_is_as_it_was(student):
    before = list(sys.path)
    resolve("a_student.py:Model")
    assert sys.path == before
    assert str(Path.cwd()) == str(student)
