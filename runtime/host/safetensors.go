package host

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

const (
	maxConfig = 1 << 20   // bytes of a config.json
	maxHeader = 100 << 20 // bytes of the header of a safetensors file, by its definition
	maxShards = 1024      // files of one model
)

// ErrChanged means that a model file is not certainly the one that a process has read.
var ErrChanged = errors.New("it was changed or replaced after the process started")

// readSafetensors describes a model in safetensors: name is one of its files, its index or its folder. The config.json
// beside it says how the model is built. Parameters and bytes are unknown if a tensor packs several weights in a number;
// how many bytes the KV cache takes is the engine's choice.
func readSafetensors(name string) (m event.Model, err error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		name = filepath.Join(name, "model.safetensors")
	}
	dir := filepath.Dir(name)
	files, err := shards(dir, filepath.Base(name))
	if err != nil {
		return m, err
	}
	text, err := readRegular(filepath.Join(dir, "config.json"), maxConfig)
	if err == nil {
		err = parseConfig(text, &m)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return event.Model{}, err
	}
	var all tensors
	for _, file := range files {
		f, err := openRegular(filepath.Join(dir, file))
		if err != nil {
			return event.Model{}, err
		}
		size, _ := f.Seek(0, io.SeekEnd)
		err = all.read(io.NewSectionReader(f, 0, size), size)
		_ = f.Close()
		if err != nil {
			return event.Model{}, fmt.Errorf("%s: %w", file, err)
		}
	}
	all.describe(&m)
	return m, nil
}

// shards returns the names of the files with the weights of a model.
func shards(dir, name string) ([]string, error) {
	text, err := readRegular(filepath.Join(dir, "model.safetensors.index.json"), maxHeader)
	switch {
	case errors.Is(err, os.ErrNotExist) && strings.HasSuffix(name, ".safetensors"):
		return []string{name}, nil
	case err != nil:
		return nil, err
	}
	var index struct {
		Files map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("read index: %w", err)
	}
	var files []string
	for _, file := range index.Files {
		if file != filepath.Base(file) || file == ".." {
			return nil, fmt.Errorf("read index: %q is not a file beside it", file)
		}
		files = append(files, file)
	}
	slices.Sort(files)
	if files = slices.Compact(files); len(files) == 0 || len(files) > maxShards {
		return nil, fmt.Errorf("read index: %d files", len(files))
	}
	if strings.HasSuffix(name, ".safetensors") && name != "model.safetensors" && !slices.Contains(files, name) {
		return []string{name}, nil // another model in the same folder
	}
	return files, nil
}

// config is what a config.json of Hugging Face says, by the names that its architectures use.
type config struct {
	Text     *config `json:"text_config"`
	Type     string  `json:"model_type"`
	Layers   int     `json:"num_hidden_layers"`
	LayersB  int     `json:"n_layer"`
	Width    int     `json:"hidden_size"`
	WidthB   int     `json:"n_embd"`
	Heads    int     `json:"num_attention_heads"`
	HeadsB   int     `json:"n_head"`
	KVHeads  int     `json:"num_key_value_heads"`
	HeadDim  int     `json:"head_dim"`
	Vocab    int     `json:"vocab_size"`
	Experts  int     `json:"num_experts"`
	ExpertsB int     `json:"num_local_experts"`
	ExpertsC int     `json:"n_routed_experts"`
	Used     int     `json:"num_experts_per_tok"`
	Forward  int     `json:"moe_intermediate_size"`
	ForwardB int     `json:"intermediate_size"`
	Context  int     `json:"max_position_embeddings"`
	ContextB int     `json:"n_positions"`
}

func parseConfig(text []byte, m *event.Model) error {
	var c config
	if err := json.Unmarshal(text, &c); err != nil {
		return fmt.Errorf("read config.json: %w", err)
	}
	if c.Layers == 0 && c.Text != nil {
		c = *c.Text
	}
	m.Architecture, m.Layers, m.Width, m.Heads = c.Type, cmp.Or(c.Layers, c.LayersB), cmp.Or(c.Width, c.WidthB), cmp.Or(c.Heads, c.HeadsB)
	m.KVHeads, m.HeadDim, m.Vocab = c.KVHeads, c.HeadDim, c.Vocab
	m.Experts, m.ExpertsUsed = cmp.Or(c.Experts, c.ExpertsB, c.ExpertsC), c.Used
	m.FeedForward, m.TrainContext = cmp.Or(c.Forward, c.ForwardB), cmp.Or(c.Context, c.ContextB)
	if m.Experts == 0 {
		m.ExpertsUsed = 0
	}
	for _, n := range []*int{&m.Layers, &m.Width, &m.Heads, &m.KVHeads, &m.HeadDim, &m.Vocab, &m.Experts, &m.ExpertsUsed, &m.FeedForward, &m.TrainContext} {
		if *n < 0 || *n > 1<<31 {
			*n = 0
		}
	}
	return nil
}

// tensors sums up the tensors of a model.
type tensors struct {
	elements, bytes  int64            // all
	experts, weights int64            // of these in routed experts
	table, tableSize int64            // of these in the table of tokens
	rows             int64            // of that table
	byType           map[string]int64 // elements
	packed           bool             // a number holds several weights, or scales them
	untied           bool             // the output has its own matrix
	other            bool             // some are not used for each token: of images, sound, or predicted tokens
}

// read adds the tensors that the header of a file of a size in bytes lists.
func (t *tensors) read(f io.Reader, fileSize int64) error {
	var size [8]byte
	if _, err := io.ReadFull(f, size[:]); err != nil {
		return fmt.Errorf("read header: %w", err)
	}
	n := binary.LittleEndian.Uint64(size[:])
	if n > maxHeader {
		return fmt.Errorf("read header: %d bytes", n)
	}
	var header map[string]json.RawMessage
	if err := json.NewDecoder(io.LimitReader(f, int64(n))).Decode(&header); err != nil {
		return fmt.Errorf("read header: %w", err)
	}
	before := t.bytes
	for name, text := range header {
		if name == "__metadata__" {
			continue
		}
		var one struct {
			Type  string   `json:"dtype"`
			Shape []int64  `json:"shape"`
			At    [2]int64 `json:"data_offsets"`
		}
		if err := json.Unmarshal(text, &one); err != nil {
			return fmt.Errorf("read tensor: %w", err)
		}
		if err := t.add(name, one.Type, one.Shape, one.At[1]-one.At[0]); err != nil {
			return err
		}
	}
	if need, has := t.bytes-before, fileSize-int64(len(size))-int64(n); need > has {
		return fmt.Errorf("read tensors: they need %d bytes, the file has %d", need, max(has, 0))
	}
	return nil
}

// floatBytes is the size of a number of the types whose tensors hold one weight in each.
var floatBytes = map[string]int64{"F64": 8, "F32": 4, "F16": 2, "BF16": 2}

// add adds a tensor.
func (t *tensors) add(name, kind string, shape []int64, bytes int64) error {
	elements := int64(1)
	for _, n := range shape {
		if n < 0 || n > 0 && elements > (1<<50)/n {
			return fmt.Errorf("read tensor: shape %v", shape)
		}
		elements *= n
	}
	width, isFloat := floatBytes[kind]
	if bytes < 0 || bytes > 1<<50 || t.bytes > 1<<55 || isFloat && bytes != elements*width {
		return fmt.Errorf("read tensor: %d bytes for shape %v of %s", bytes, shape, kind)
	}
	if t.byType == nil {
		t.byType = make(map[string]int64)
	}
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(name, w) })
	}
	t.elements, t.bytes, t.byType[kind] = t.elements+elements, t.bytes+bytes, t.byType[kind]+elements
	t.packed = t.packed || !isFloat || has("_scale", "qweight", "_blocks")
	t.untied = t.untied || has("lm_head.", "embed_out.")
	t.other = t.other || has("vision", "visual", "audio", "mtp.", "eh_proj")
	switch {
	case has(".experts."):
		t.experts, t.weights = t.experts+elements, t.weights+bytes
	case has("embed_tokens.weight", "wte.weight", "embed_in.weight", "tok_embeddings.weight") && len(shape) == 2:
		t.table, t.tableSize, t.rows = elements, bytes, shape[0]
	}
	return nil
}

// describe sets what the tensors say of a model.
func (t *tensors) describe(m *event.Model) {
	m.Bytes = t.bytes
	for kind, n := range t.byType {
		if most := t.byType[m.Quantisation]; n > most || n == most && kind < m.Quantisation {
			m.Quantisation = kind
		}
	}
	if t.packed {
		m.Quantisation = ""
		return
	}
	m.Parameters = t.elements
	if t.other || t.experts > 0 && (m.Experts <= 0 || m.ExpertsUsed <= 0 || m.ExpertsUsed > m.Experts) {
		return
	}
	m.Active, m.WeightBytes = t.elements, t.bytes
	if t.experts > 0 {
		m.Active += t.experts/int64(m.Experts)*int64(m.ExpertsUsed) - t.experts
		m.WeightBytes += t.weights/int64(m.Experts)*int64(m.ExpertsUsed) - t.weights
	}
	if t.untied && t.rows > 0 { // one row is looked up; the table is not multiplied
		m.Active += t.table/t.rows - t.table
		m.WeightBytes += t.tableSize/t.rows - t.tableSize
	}
}

// openRegular opens a regular file: opening others may wait, or do something.
func openRegular(name string) (*os.File, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() == 0: // files of /proc have no size
		return nil, fmt.Errorf("open %s: not a regular file with data", name)
	}
	return os.Open(name)
}

// readRegular reads a file of at most the given number of bytes.
func readRegular(name string, most int64) ([]byte, error) {
	f, err := openRegular(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("read %s: more than %d bytes", name, most)
	}
	return text, err
}
