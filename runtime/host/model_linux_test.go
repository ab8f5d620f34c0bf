package host

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmtop/llmtop/profiler/event"
)

const demoModel = "../engine/native/demo/llmtop-demo-moe-q8_0.gguf"

// user starts a process in a folder that has a file on its command line, and returns its number.
func user(t *testing.T, dir string, args ...string) int {
	t.Helper()
	c := exec.Command("sh", append([]string{"-c", "sleep 600; :", "llama-server"}, args...)...)
	c.Dir = dir
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return c.Process.Pid
}

func put(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestReadModel reads the file that a process uses, in its folder, and none that was changed or replaced since it started.
func TestReadModel(t *testing.T) {
	data, err := os.ReadFile(demoModel)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	name := filepath.Join(dir, "m.gguf")
	put(t, name, data)
	pid := user(t, dir, "-m", name)
	for _, n := range []string{name, "m.gguf"} {
		m, err := ReadModel([]int{pid}, n)
		want := event.Model{Layers: 8, Experts: 16, ExpertsUsed: 2, Width: 192, Parameters: 11038400, TrainContext: 1024}
		if err != nil || m.Layers != want.Layers || m.Experts != want.Experts || m.Width != want.Width || m.Parameters != want.Parameters || m.TrainContext != want.TrainContext || m.Path != n {
			t.Errorf("%s: %+v, %v", n, m, err)
		}
		if m.KVBytes != 0 { // a shell is no llama-server
			t.Errorf("KV cache of %d bytes a token", m.KVBytes)
		}
	}
	put(t, filepath.Join(dir, "text.gguf"), []byte("GGUF, but no header"))
	if err := unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"text.gguf", "fifo", "absent.gguf", ".", "/etc/passwd", "/dev/zero"} {
		if m, err := ReadModel([]int{pid}, n); err == nil || m != (event.Model{}) {
			t.Errorf("%s: %+v, %v", n, m, err)
		}
	}
	if _, err := ReadModel(nil, name); err == nil {
		t.Error("read for no process")
	}
	old := time.Now().Add(-time.Hour)
	for how, change := range map[string]func(){
		"in place": func() { put(t, name, data) },
		"by an older file": func() {
			put(t, name+"2", data)
			_ = os.Chtimes(name+"2", old, old)
			_ = os.Rename(name+"2", name)
		},
	} {
		p := user(t, dir, "-m", name)
		time.Sleep(50 * time.Millisecond) // clocks of files are coarse
		change()
		if m, err := ReadModel([]int{p}, name); !errors.Is(err, ErrChanged) || m != (event.Model{}) {
			t.Errorf("replaced %s: %+v, %v", how, m, err)
		}
		if m, err := ReadModel([]int{p, user(t, dir)}, "m.gguf"); !errors.Is(err, ErrChanged) {
			t.Errorf("replaced %s, with a younger process: %+v, %v", how, m, err)
		}
	}
}

// safetensorsOf returns a file with tensors by name: type, and rows and columns.
func safetensorsOf(all map[string][3]any) []byte {
	header, at := map[string]any{"__metadata__": map[string]string{"format": "pt"}}, 0
	for name, v := range all {
		size := v[1].(int) * v[2].(int) * int(cmp.Or(floatBytes[v[0].(string)], 2))
		header[name] = map[string]any{"dtype": v[0], "shape": []any{v[1], v[2]}, "data_offsets": []int{at, at + size}}
		at += size
	}
	text, _ := json.Marshal(header)
	return slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text, make([]byte, at))
}

const mixtralConfig = `{"model_type":"mixtral","num_hidden_layers":2,"hidden_size":8,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":10,
	"num_local_experts":4,"num_experts_per_tok":2,"intermediate_size":16,"max_position_embeddings":64,"new_key":[1]}`

// TestReadSafetensors reads a model of several files by its folder, its index and one of its files.
func TestReadSafetensors(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "my-moe")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := func(name string, data []byte) { put(t, filepath.Join(dir, name), data) }
	one, two := "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
	file(one, safetensorsOf(map[string][3]any{"model.embed_tokens.weight": {"BF16", 10, 8}, "lm_head.weight": {"BF16", 10, 8}}))
	file(two, safetensorsOf(map[string][3]any{"model.layers.0.mlp.experts.0.w1.weight": {"BF16", 16, 32}, "model.norm": {"F32", 1, 4}}))
	file("model.safetensors.index.json", []byte(`{"weight_map":{"a":"`+one+`","b":"`+two+`","c":"`+one+`"}}`))
	file("config.json", []byte(mixtralConfig))
	want := event.Model{
		Architecture: "mixtral", Quantisation: "BF16", Layers: 2, Width: 8, Heads: 4, KVHeads: 2, Vocab: 10, Experts: 4, ExpertsUsed: 2,
		FeedForward: 16, TrainContext: 64, Parameters: 80 + 80 + 512 + 4, Active: 8 + 80 + 256 + 4, Bytes: 2*676 + 8, WeightBytes: 2*348 + 8,
	}
	pid := user(t, dir)
	for _, n := range []string{dir, filepath.Join(dir, "model.safetensors.index.json"), filepath.Join(dir, two), one} {
		want.Path = n
		if m, err := ReadModel([]int{pid}, n); err != nil || m != want {
			t.Errorf("%s: %+v, %v; want %+v", n, m, err, want)
		}
	}
	time.Sleep(50 * time.Millisecond)
	file("config.json", []byte(strings.ReplaceAll(mixtralConfig, ":2,", ":3,"))) // of the next version of the model
	if m, err := ReadModel([]int{pid}, dir); !errors.Is(err, ErrChanged) {
		t.Errorf("%+v, %v", m, err)
	}
	file("model.safetensors.index.json", []byte(`{"weight_map":{"a":"../secret.safetensors"}}`))
	if _, err := ReadModel([]int{user(t, dir)}, dir); err == nil {
		t.Error("a file of another folder was read")
	}
}

// TestPackedTensors: what is packed has no number of parameters, and experts without a configuration no active ones.
func TestPackedTensors(t *testing.T) {
	for kind, packed := range map[string]bool{"I32": true, "U8": true, "F8_E4M3": true, "F16": false} {
		var all tensors
		file := safetensorsOf(map[string][3]any{"model.layers.0.mlp.experts.0.w1": {kind, 4, 4}})
		if err := all.read(bytes.NewReader(file), int64(len(file))); err != nil {
			t.Fatal(err)
		}
		var m event.Model
		all.describe(&m)
		if m.Bytes != 32 || (m.Parameters == 0) != packed || m.Active != 0 {
			t.Errorf("%s: %+v", kind, m)
		}
	}
}

// TestTensorsThatCannotBe: sizes are not taken from a file that lacks its end, nor from offsets that do not fit the shape.
func TestTensorsThatCannotBe(t *testing.T) {
	whole := safetensorsOf(map[string][3]any{"a": {"BF16", 2, 3}, "b": {"F32", 1, 1}})
	for name, file := range map[string][]byte{
		"truncated": whole[:len(whole)-1],
		"shape":     bytes.Replace(whole, []byte("[2,3]"), []byte("[2,9]"), 1),
		"type":      bytes.Replace(whole, []byte(`"F32"`), []byte(`"F64"`), 1),
	} {
		var all tensors
		if err := all.read(bytes.NewReader(file), int64(len(file))); err == nil {
			t.Errorf("%s: read %+v", name, all)
		}
	}
	if f, err := openRegular("/proc/version"); err == nil { // to read another one of /proc may wait, or take what it returns
		t.Errorf("opened %s", f.Name())
	}
}

func FuzzSafetensors(f *testing.F) {
	f.Add(safetensorsOf(map[string][3]any{"lm_head.weight": {"BF16", 2, 3}}), mixtralConfig)
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff{}"), `{"text_config":{"n_layer":-1}}`)
	f.Add([]byte("\x40\x00\x00\x00\x00\x00\x00\x00"+`{"a":{"dtype":"I8","shape":[-1,9e18],"data_offsets":[9,1]}}`), `[]`)
	f.Fuzz(func(t *testing.T, file []byte, config string) {
		var m event.Model
		if parseConfig([]byte(config), &m) != nil {
			m = event.Model{}
		}
		var all tensors
		if all.read(bytes.NewReader(file), int64(len(file))) != nil {
			return
		}
		all.describe(&m)
		for _, n := range []int64{m.Parameters, m.Active, m.Bytes, m.WeightBytes, int64(m.Layers), int64(m.Experts)} {
			if n < 0 {
				t.Fatalf("negative: %+v", m)
			}
		}
		if m.Active > m.Parameters || m.WeightBytes > m.Bytes {
			t.Fatalf("more is active than there is: %+v", m)
		}
	})
}
