package answers

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strconv"
)

// Upper limits of a valid response.
const (
	maxExperts = 4096 // experts per layer
	maxCells   = 1 << 16
	maxHeader  = 4 << 10 // bytes of the numpy array header
	maxPicks   = 1 << 25
)

// Picks holds the picked experts, [token][layer][pick].
type Picks struct {
	Tokens, Layers, Used int
	cell                 func(i int) uint64
}

// DecodePicks reads the picks of a response: base64 of a numpy array (vLLM) or of plain int32 values (SGLang). The plain
// form does not contain its shape, so the caller passes the picks per token and the number of tokens; they are ignored
// for numpy.
func DecodePicks(text []byte, used, tokens int) (*Picks, error) {
	raw := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(raw, text)
	if err != nil {
		return nil, fmt.Errorf("read picks: %w", err)
	}
	var p *Picks
	if raw = raw[:n]; bytes.HasPrefix(raw, []byte("\x93NUMPY")) {
		p, err = array(raw)
	} else {
		p, err = plain(raw, used, tokens)
	}
	if err != nil {
		return nil, fmt.Errorf("read picks: %w", err)
	}
	return p, nil
}

// errShape means that the picks are in plain form and the number of picks per token is not available.
var errShape = errors.New("the number of experts per token is not available")

func plain(raw []byte, used, tokens int) (*Picks, error) {
	switch n := len(raw) / 4; {
	case used <= 0 || tokens <= 0:
		return nil, errShape
	case len(raw)%4 != 0 || n == 0 || n > maxPicks || n%tokens != 0 || n/tokens%used != 0:
		return nil, fmt.Errorf("%d bytes do not match the picks of %d tokens, %d per layer", len(raw), tokens, used)
	default:
		return &Picks{tokens, n / tokens / used, used, cells(raw, 4)}, nil
	}
}

// cells returns a reader of little-endian integers of the given size in bytes.
func cells(data []byte, size int) func(i int) uint64 {
	return func(i int) uint64 {
		var wide [8]byte
		copy(wide[:], data[i*size:(i+1)*size])
		return binary.LittleEndian.Uint64(wide[:])
	}
}

// Fields of the array header (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html), a Python
// literal.
var (
	descr   = regexp.MustCompile(`'descr': '[<|]([ui])([1248])'`)
	fortran = regexp.MustCompile(`'fortran_order': False`)
	shape   = regexp.MustCompile(`'shape': \((\d{1,9}), (\d{1,9}), (\d{1,9}),? *\)`)
)

// array reads a numpy array with three dimensions.
func array(raw []byte) (*Picks, error) {
	if len(raw) < 12 {
		return nil, errors.New("the array has no header")
	}
	start, length := 10, int(binary.LittleEndian.Uint16(raw[8:]))
	if raw[6] >= 2 {
		start, length = 12, int(min(binary.LittleEndian.Uint32(raw[8:]), maxHeader+1))
	}
	if length > maxHeader || len(raw) < start+length {
		return nil, errors.New("the header of the array is truncated or too long")
	}
	header, data := raw[start:start+length], raw[start+length:]
	kind, dims := descr.FindSubmatch(header), shape.FindSubmatch(header)
	if kind == nil || dims == nil || !fortran.Match(header) {
		return nil, errors.New("the array does not hold integers in three dimensions")
	}
	var n [3]int
	size, all := int(kind[2][0]-'0'), 1
	for i := range n {
		n[i], _ = strconv.Atoi(string(dims[i+1])) // at most 9 digits
		if n[i] == 0 || n[i] > maxPicks/all {
			return nil, errors.New("the array is empty, or too large")
		}
		all *= n[i]
	}
	if len(data) != all*size {
		return nil, fmt.Errorf("the array has %d bytes, want %d numbers in %d bytes", len(data), all, all*size)
	}
	return &Picks{n[0], n[1], n[2], cells(data, size)}, nil
}

// row reads the picks of a token in a layer. It returns false if an expert occurs twice: dense layers contain
// meaningless numbers.
func (p *Picks) row(token, layer int, into []uint16) bool {
	for k := range into {
		v := p.cell((token*p.Layers+layer)*p.Used + k)
		if v >= maxExperts {
			return false
		}
		for _, before := range into[:k] {
			if uint64(before) == v {
				return false
			}
		}
		into[k] = uint16(v)
	}
	return true
}
