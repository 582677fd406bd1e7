"""Configuration: YAML in and out, presets, overrides, and one clear line for what cannot be."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from dragoman.config import (
    PRESETS,
    Config,
    DecodeConfig,
    ModelConfig,
    fields_of,
    read_yaml,
    sections_in,
    with_overrides,
)
from dragoman.errors import ConfigError, DragomanError

FILES: dict[str, Any] = {"data": {"train": {"src": "train.en", "tgt": "train.de"}}}


def refusal(data: Any) -> str:
    """The message that refuses ``data``, which is one line."""
    with pytest.raises(ConfigError) as caught:
        Config.from_mapping(data)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def vocabularies(**fields: Any) -> dict[str, Any]:
    return {"src_vocab_size": 11, "tgt_vocab_size": 11, **fields}


def test_only_the_training_files_must_be_given_and_the_rest_is_the_papers() -> None:
    config = Config.from_mapping(FILES)
    model, train, decode = config.model, config.train, config.decode
    assert (model.d_model, model.n_heads, model.d_ff) == (512, 8, 2048)
    assert (model.n_encoder_layers, model.n_decoder_layers) == (6, 6)
    assert (model.head_d_k, model.head_d_v, model.dropout, model.norm_eps) == (64, 64, 0.1, 1e-5)
    assert (model.norm, model.activation, model.positions, model.share_embeddings) == (
        "post", "relu", "sinusoidal", "all",
    )  # fmt: skip
    assert (model.attention_dropout, model.activation_dropout, model.max_len) == (0.0, 0.0, 1024)
    assert (model.scale_embeddings, model.attention_bias, model.generator_bias) == (True, True, False)
    assert (train.adam_betas, train.adam_eps, train.label_smoothing) == ((0.9, 0.98), 1e-9, 0.1)
    assert (train.schedule, train.warmup_steps, train.average) == ("noam", 4000, 5)
    assert (decode.beam_size, decode.length_penalty, decode.max_extra_tokens) == (4, 0.6, 50)
    assert refusal({}) == "configuration: data is missing"
    assert refusal({"data": {"train": {"src": "a"}}}) == "configuration: data.train.tgt is missing"


@pytest.mark.parametrize(
    "data",
    [
        FILES,
        {"model": {"preset": "tiny", "dropout": 0.3, "d_k": 8, "positions": "rotary"}, **FILES},
        {
            "data": {
                "train": {"src": "bücher/文.zh.gz", "tgt": "with space: and # signs.en"},
                "valid": {"src": "no", "tgt": "1e3"},
                "src_lang": "no",  # which YAML would read as false
                "tgt_lang": "nan",  # Min Nan Chinese
                "tokenizer": {"kind": "unigram", "vocab_size": 8009, "joint": False, "sampling": 0.1},
                "max_ratio": 1.7,
            },
            "model": {"norm_eps": 1e-9, "d_model": 22, "n_heads": 11},
            "train": {"adam_betas": [0.9, 0.999], "adam_eps": 1e-12, "lr": 3e-4, "schedule": "cosine",
                      "max_steps": 5003, "max_minutes": 0.1 + 0.2, "patience": 7, "seed": 2**63 - 1},
            "decode": {"beam_size": 1, "length_penalty": 0},
        },
    ],
)  # fmt: skip
def test_a_configuration_written_down_is_read_back_as_it_was(data: dict[str, Any], tmp_path: Path) -> None:
    config = Config.from_mapping(data)
    path = tmp_path / "config.yaml"
    path.write_text(config.to_yaml(), encoding="utf-8")
    assert Config.from_yaml(path) == config
    assert Config.from_yaml(path).to_yaml() == config.to_yaml()


def test_what_is_written_down_holds_every_setting() -> None:
    written = yaml.safe_load(Config.from_mapping(FILES).to_yaml())
    assert list(written) == ["task", "model", "data", "train", "decode"]
    assert written.pop("task") == "translation"
    for section, settings_of in written.items():
        assert set(settings_of) == set(fields_of(type(getattr(Config.from_mapping(FILES), section))))
    drawn = {"weight": 1.0, "tag": None, "src_lang": None, "tgt_lang": None}
    assert written["data"]["train"] == {"src": "train.en", "tgt": "train.de", **drawn}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"modle": {}}, "unknown setting modle: did you mean model?"),
        ({"model": {"n_head": 7}}, "unknown setting model.n_head: did you mean n_heads?"),
        ({"model": {"presett": "tiny"}}, "unknown setting model.presett: did you mean preset?"),
        ({"train": {"warmup": 7}}, "unknown setting train.warmup: did you mean warmup_steps?"),
        ({"decode": {"beam": 7}}, "unknown setting decode.beam: did you mean beam_size?"),
        ({"decode": {"zzzz": 7}}, "unknown setting decode.zzzz: known are beam_size, length_penalty, "),
        ({"data": {"train": {"src": "a", "tgt": "b", "trg": "c"}}}, "setting data.train.trg: did you mean tgt?"),
        ({"data": {**FILES["data"], "valid": {"scr": "c"}}}, "data.valid.scr: did you mean src?"),
        ({"data": {**FILES["data"], "tokenizer": {"vocab": 7}}}, "data.tokenizer.vocab: did you mean vocab_size?"),
    ],
)  # fmt: skip
def test_an_unknown_key_is_refused_with_the_nearest_name(data: dict[str, Any], message: str) -> None:
    assert message in refusal({**FILES, **data})


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        ({"model": {"n_heads": 7}}, ["n_heads = 7", "does not divide model.d_model = 512", "[1, 2, 4, 8, 16, 32]"]),
        ({"model": {"d_model": 21, "n_heads": 3}}, ["model.d_model = 21 is odd"]),
        ({"model": {"d_k": 7, "positions": "rotary"}}, ["model.d_k = 7 is odd"]),
        ({"model": {"d_model": 14, "n_heads": 2, "positions": "rotary"}}, ["model.d_k = 7 is odd"]),
        ({"model": {"n_encoder_layers": 0, "n_decoder_layers": 0}}, ["both 0"]),
        ({"model": {"d_model": 0}}, ["model.d_model must be 1 or more, got 0"]),
        ({"model": {"d_ff": -5}}, ["model.d_ff must be 1 or more, got -5"]),
        ({"model": {"d_model": 10**9}}, ["model.d_model must be at most 65536, got 1000000000"]),
        ({"decode": {"max_extra_tokens": 10**20}}, ["decode.max_extra_tokens must be at most 10000, got 1000000"]),
        ({"data": {**FILES["data"], "max_tokens": 10**9}}, ["data.max_tokens must be at most 100000, got 1000000000"]),
        ({"model": {"dropout": 1}}, ["model.dropout must be below 1, got 1"]),
        ({"model": {"dropout": float("nan")}}, ["model.dropout must be a finite number, got nan"]),
        ({"model": {"norm": "middle"}}, ["model.norm must be post or pre, got 'middle'"]),
        ({"model": {"d_model": "wide"}}, ["model.d_model must be a whole number, got 'wide'"]),
        ({"model": {"d_model": 12.5}}, ["model.d_model must be a whole number, got 12.5"]),
        ({"model": {"d_model": "1\n2"}}, [r"model.d_model must be a whole number, got '1\n2'"]),
        ({"model": {"preset": "smal"}}, ["model.preset must be one of tiny, small, student,", "got 'smal'"]),
        ({"model": {"preset": ["tiny"]}}, ["model.preset must be one of tiny", "got ['tiny']"]),
        ({"model": {"preset": None}}, ["one of tiny, small, student, student-tiny, base, big, got None"]),
        ({"model": {3: 4}}, ["model.3 must be a name, got 3"]),
        ({"model": {"a\nb": 4}}, [r"unknown setting model.'a\nb'"]),
        ({"train": {"schedule": "cosine"}}, ["train.schedule = 'cosine'", "set train.lr"]),
        ({"train": {"schedule": "inverse_sqrt"}}, ["train.schedule = 'inverse_sqrt'", "set train.lr"]),
        ({"train": {"schedule": "cosine", "lr": 1, "max_steps": 7}}, ["train.warmup_steps = 4000", "max_steps = 7"]),
        ({"train": {"schedule": "cosine", "lr": 1, "max_steps": 1}}, ["train.warmup_steps = 4000", "max_steps = 1:"]),
        ({"train": {"adam_betas": [0.9, 1.0]}}, ["train.adam_betas = (0.9, 1.0)", "[0, 1)"]),
        ({"train": {"max_steps": 0}}, ["train.max_steps must be 1 or more, got 0"]),
        ({"train": {"average": True}}, ["train.average must be a whole number, got 'true'"]),
        ({"train": {"patience": False}}, ["train.patience must be a whole number, got 'false'"]),
        ({"model": {"dropout": True}}, ["model.dropout must be a number, got 'true'"]),
        ({"data": {"noise": {"case": True}}}, ["data.noise.case must be a number, got 'true'"]),
        ({"train": None}, ["train must be a section (a mapping of settings to values), got None"]),
        ({"train": "fast"}, ["train must be a section", "got 'fast'"]),
        ({"data": ["a", "b"]}, ["data must be a section", "got ['a', 'b']"]),
        ({"decode": {"beam_size": 0}}, ["decode.beam_size must be 1 or more, got 0"]),
        ({"decode": {"beam_size": 0, "length_penalty": -1}}, ["must be 1 or more, got 0; decode.length_penalty must"]),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_one_line_with_its_value_and_the_rule(
    data: dict[str, Any], parts: list[str]
) -> None:
    message = refusal({**FILES, **data})
    for part in parts:
        assert part in message


@pytest.mark.parametrize("data", [None, [], 3, "model"])
def test_what_is_no_mapping_is_refused(data: Any) -> None:
    assert "section" in refusal(data)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (dict(tgt_vocab_size=13), r"share_embeddings = 'all' needs one vocabulary.* 11 .* 13"),
        (dict(pad_id=11), r"pad_id = 11 lies outside"),
        (dict(src_vocab_size=0), r"src_vocab_size must be 1 or more, got 0"),
        (dict(d_modle=7), r"unknown setting d_modle: did you mean d_model\?"),
        (dict(d_model=10, n_heads=3), r"n_heads = 3 does not divide"),
        (dict(preset="tinny"), r"preset must be one of tiny"),
    ],
)
def test_a_model_that_cannot_be_is_refused_as_a_config_error(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        ModelConfig(**vocabularies(**fields))
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, DragomanError)
    assert "\n" not in str(caught.value)


def test_vocabularies_of_two_sizes_go_with_less_sharing() -> None:
    for share in ("decoder", "none"):
        assert ModelConfig(src_vocab_size=11, tgt_vocab_size=13, share_embeddings=share).tgt_vocab_size == 13


def test_own_widths_free_the_heads_from_dividing_d_model() -> None:
    config = ModelConfig(**vocabularies(d_model=22, n_heads=3, d_k=5, d_v=7))
    assert (config.head_d_k, config.head_d_v) == (5, 7)
    with pytest.raises(ConfigError, match="or give d_k and d_v"):
        ModelConfig(**vocabularies(d_model=22, n_heads=3, d_k=5))


@pytest.mark.parametrize(
    ("preset", "sizes"),
    [
        ("tiny", (128, 256, 4, 4, 4, 0.1)),
        ("small", (256, 1024, 4, 3, 3, 0.1)),
        ("student", (256, 1024, 4, 6, 2, 0.1)),
        ("student-tiny", (128, 512, 4, 6, 1, 0.1)),
        ("base", (512, 2048, 8, 6, 6, 0.1)),
        ("big", (1024, 4096, 16, 6, 6, 0.3)),
    ],
)
def test_presets_are_the_sizes_of_the_plan(preset: str, sizes: tuple[float, ...]) -> None:
    for config in (
        ModelConfig(**vocabularies(preset=preset)),
        Config.from_mapping({"model": {"preset": preset}, **FILES}).model,
    ):
        assert sizes == (
            config.d_model, config.d_ff, config.n_heads,
            config.n_encoder_layers, config.n_decoder_layers, config.dropout,
        )  # fmt: skip
    assert len(PRESETS) == 6


def test_what_is_said_beside_a_preset_wins() -> None:
    model = Config.from_mapping({"model": {"dropout": 0.2, "preset": "big", "n_heads": 8}, **FILES}).model
    assert (model.dropout, model.n_heads, model.d_model) == (0.2, 8, 1024)


def test_settings_of_the_search_that_were_set_are_known_though_they_equal_a_default() -> None:
    data = {"train": {"src": "a", "tgt": "b"}}
    of_mapping = Config.from_mapping({"data": data, "decode": {"beam_size": 4}}).decode
    for decode in (of_mapping, copy.deepcopy(of_mapping), DecodeConfig(beam_size=4)):
        assert decode == DecodeConfig()
        assert decode.set_values == {"beam_size": 4}
        assert Config.model_validate({"data": data, "decode": decode}).decode.set_values == {"beam_size": 4}
    assert DecodeConfig().set_values == Config.from_mapping({"data": data}).decode.set_values == {}


def test_a_preset_that_is_set_takes_the_place_of_sizes_and_of_nothing_else() -> None:
    written = Config.from_mapping({"model": {"preset": "tiny", "dropout": 0.2, "norm": "pre"}, **FILES}).model_dump()
    for overrides in (["model.preset=base", "model.n_heads=4"], ["model.n_heads=4", "model.preset=base"]):
        model = Config.from_mapping(with_overrides(written, overrides)).model
        assert (model.d_model, model.n_encoder_layers, model.n_heads) == (512, 6, 4)
        assert (model.dropout, model.norm) == (0.2, "pre")
    assert written["model"]["d_model"] == 128


@pytest.mark.parametrize("config", [Config.from_mapping(FILES), ModelConfig(**vocabularies())])
def test_a_configuration_is_frozen(config: Any) -> None:
    field = next(iter(type(config).model_fields))
    with pytest.raises(ValidationError, match="frozen"):
        setattr(config, field, 7)
    with pytest.raises(ValidationError, match="frozen"):
        delattr(config, field)


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ("train.lr=1e-3", 0.001),
        ("train.lr=3.5E+2", 350.0),
        ("train.lr=0.3", 0.3),
        ("train.max_steps=2003", 2003),
        ("train.tensorboard=true", True),
        ("train.adam_betas=[0.9, 0.98]", [0.9, 0.98]),
        ("data.src_lang=de", "de"),
        ("data.src_lang=nan", "nan"),  # a language, not a number
        ("data.src_lang=infinity", "infinity"),
        ("data.src_lang='no'", "no"),
        ("data.src_lang=no", "no"),  # Norwegian, and no switch
        ("data.src_lang=NO", "NO"),
        ("data.train.src=a=b.txt", "a=b.txt"),
        ("data.max_ratio=null", None),
        (" train.lr =1", 1),
    ],
)
def test_an_override_is_read_as_yaml(override: str, value: Any) -> None:
    before = {"train": {"lr": 7.0, "seed": 3}, **FILES}
    after = with_overrides(before, [override])
    node: Any = after
    for key in override.partition("=")[0].strip().split("."):
        node = node[key]
    assert node == value
    assert type(node) is type(value)
    assert before == {"train": {"lr": 7.0, "seed": 3}, "data": {"train": {"src": "train.en", "tgt": "train.de"}}}
    assert after["train"]["seed"] == 3


def test_overrides_reach_the_configuration_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("data: {train: {src: a, tgt: b}}\ntrain: {lr: 2e-3, max_steps: 7}\n", encoding="utf-8")
    overrides = ["train.lr=1e-3", "decode.beam_size=3", "decode.beam_size=5", "model.preset=tiny"]
    config = Config.from_yaml(path, overrides)
    assert (config.train.lr, config.train.max_steps, config.decode.beam_size, config.model.d_model) == (
        0.001, 7, 5, 128,
    )  # fmt: skip
    assert Config.from_yaml(path).train.lr == 0.002  # YAML 1.1 calls 2e-3 a string


def test_norwegian_is_a_language_and_switches_take_yes_and_no(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(
        "data: {train: {src: on, tgt: off}, src_lang: yes, tgt_lang: no, drop_duplicates: on, tokenizer: {joint: no}}\n"
        "train: {tensorboard: yes}\nmodel: {share_embeddings: none, generator_bias: True, attention_bias: FALSE}\n",
        encoding="utf-8",
    )
    config = Config.from_yaml(path, ["model.scale_embeddings=off"])
    assert (config.data.src_lang, config.data.tgt_lang, str(config.data.train.src)) == ("yes", "no", "on")
    assert (config.data.drop_duplicates, config.data.tokenizer.joint, config.train.tensorboard) == (True, False, True)
    model = config.model
    assert (model.generator_bias, model.attention_bias, model.scale_embeddings) == (True, False, False)
    path.write_text(config.to_yaml(), encoding="utf-8")
    assert Config.from_yaml(path) == config


TAGGED = ("bool maybe", "timestamp foo", "int ''", "float ''", "map [1, 2]", "set [1]")  # at which PyYAML stumbles


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("train.lr", "write section.key=value"),
        ("=3", "write section.key=value"),
        ("train..lr=3", "write section.key=value"),
        ("train.lr.x=3", "lr is a value, not a section"),
        ("train.lr={3", "is not valid YAML"),
        ("train.lr=2001-99-99", "is not valid YAML"),  # a date that is none
        ("train.seed=" + "9" * 5003, "is not valid YAML"),
        ("train.seed=" + "[" * 5003, "is not valid YAML"),
        *((f"train.seed=!!{tag}", "is not valid YAML") for tag in TAGGED[:4]),
    ],
)
def test_an_override_that_cannot_be_read_is_refused(override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        with_overrides({"train": {"lr": 1.0}, **FILES}, [override])


def test_a_misspelt_override_names_the_nearest_setting(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("data: {train: {src: a, tgt: b}}\n", encoding="utf-8")
    with pytest.raises(
        ConfigError, match=r"run\.yaml with --set: unknown setting model\.n_head: did you mean n_heads\?"
    ):
        Config.from_yaml(path, ["model.n_head=7"])
    path.write_text("data: {train: {src: a, tgt: b}}\nmodel: {n_head: 7}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"run\.yaml: unknown setting model\.n_head: did you mean n_heads\?"):
        Config.from_yaml(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "top level must contain only task and the sections"),
        (b"- a\n- b\n", "top level must contain only task and the sections"),
        (b"3: 4\n", "top level must contain only task and the sections"),
        (b"model: {a: 1\ntrain: 3\n", r":2: not valid YAML"),
        (b"model: \xff\n", "UTF-8"),
        (b"model: {d_model: 2001-99-99}", "not valid YAML"),
        (b"model: " + b"[" * 5003, "not valid YAML"),
        (b"model: {d_model: " + b"9" * 5003 + b"}", "not valid YAML"),
        (b"model: !!python/object/apply:os.system [ls]", "not valid YAML"),
        *((f"model: !!{tag}".encode(), "not valid YAML") for tag in TAGGED),
    ],
)
def test_a_file_that_is_no_configuration_is_named(text: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_bytes(text)
    with pytest.raises(ConfigError, match=message) as caught:
        Config.from_yaml(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_missing_file_or_a_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.yaml: no such file"):
        read_yaml(tmp_path / "nowhere.yaml")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_yaml(tmp_path)


def test_the_error_of_a_file_begins_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("data: {train: {src: a, tgt: b}}\ntrain: {max_steps: 0}\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        Config.from_yaml(path)
    assert str(caught.value).startswith(f"{path}: train.max_steps must be 1 or more, got 0")


KEYS = sorted(
    {"task", "model", "data", "train", "decode", "preset", "src", "tgt", "trees", "valid", "tokenizer"}
    | {
        name
        for field in Config.model_fields.values()
        for part in sections_in(field.annotation)
        for name in fields_of(part)
    }
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(0, 64)
    | st.floats()
    | st.floats(0, 1)
    | st.text(max_size=5)
    | st.sampled_from(["post", "pre", "rotary", "learned", "swiglu", "none", "cosine", "tiny", "big", "a\nb", "1e-3"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3) | st.integers(), inner, max_size=5)
    ),
    max_leaves=12,
)


def section(name: str) -> st.SearchStrategy[Any]:
    fields = fields_of(Config.model_fields[name].annotation)
    return st.dictionaries(st.sampled_from([*fields, "preset"]), SCALARS | VALUES, max_size=6) | VALUES


MAPPINGS = st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), VALUES, max_size=4) | st.fixed_dictionaries(
    {"data": st.just(FILES["data"]) | VALUES}, optional={name: section(name) for name in ("model", "train", "decode")}
)


@given(MAPPINGS)
@settings(max_examples=150, deadline=None)
def test_any_mapping_gives_a_configuration_or_one_line(data: dict[Any, Any]) -> None:
    try:
        config = Config.from_mapping(data)
    except ConfigError as error:
        message = str(error)
        assert message.isprintable(), message  # no line break, and nothing that plays tricks on a terminal
    else:
        assert Config.from_mapping(yaml.safe_load(config.to_yaml())) == config


@given(st.dictionaries(st.sampled_from(list(ModelConfig.model_fields)), SCALARS | st.integers(1, 37), max_size=8))
@settings(max_examples=150, deadline=None)
def test_any_fields_give_a_model_configuration_or_one_line(fields: dict[str, Any]) -> None:
    try:
        config = ModelConfig(**fields)
    except ConfigError as error:
        message = str(error)
        assert message.isprintable(), message
    else:
        assert config.head_d_k >= 1
        assert ModelConfig(**config.model_dump()) == config


@given(
    st.lists(st.text(max_size=12) | st.builds("{}={}".format, st.sampled_from(KEYS), st.text(max_size=8)), max_size=4)
)
@settings(max_examples=150, deadline=None)
def test_any_overrides_give_a_mapping_or_a_config_error(overrides: list[str]) -> None:
    try:
        data = with_overrides(FILES, overrides)
    except ConfigError:
        return
    assert isinstance(data, dict)


def test_a_key_that_stands_twice_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "twice.yaml"
    path.write_text("train:\n  max_steps: 5\nmodel: {}\ntrain:\n  max_steps: 7\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"twice\.yaml:4: not valid YAML \('train' appears twice\)"):
        read_yaml(path)
