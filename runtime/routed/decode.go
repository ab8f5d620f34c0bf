// Package routed reads which experts the router picked for each token, as vLLM and SGLang put it into their answers where they are asked to, and counts it.
package routed

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strconv"
)

// The bounds of what is believed.
const (
	maxExperts = 4096 // experts of a layer
	maxCells   = 1 << 16
	maxHeader  = 4 << 10 // bytes of the header of an array
	maxPicks   = 1 << 25
)

// Picks are the experts that were picked, [token][layer][pick].
type Picks struct {
	Tokens, Layers, Used int
	cell                 func(i int) uint64
}

// Decode reads the text of an answer: base64 of an array as numpy writes it (vLLM), or of plain int32 (SGLang), of which neither the number of picks a
// token nor that of tokens is told: they are used and tokens, of no meaning to the first form.
func Decode(text []byte, used, tokens int) (*Picks, error) {
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

// ErrShape is the error of plain numbers of which nobody says how many belong to a token.
var ErrShape = errors.New("how many experts each token picks is not told")

func plain(raw []byte, used, tokens int) (*Picks, error) {
	switch n := len(raw) / 4; {
	case used <= 0 || tokens <= 0:
		return nil, ErrShape
	case len(raw)%4 != 0 || n == 0 || n > maxPicks || n%tokens != 0 || n/tokens%used != 0:
		return nil, fmt.Errorf("%d bytes are not the picks of %d tokens, %d each in a layer", len(raw), tokens, used)
	default:
		return &Picks{tokens, n / tokens / used, used, cells(raw, 4)}, nil
	}
}

// cells reads little-endian numbers of so many bytes.
func cells(data []byte, size int) func(i int) uint64 {
	return func(i int) uint64 {
		var wide [8]byte
		copy(wide[:], data[i*size:(i+1)*size])
		return binary.LittleEndian.Uint64(wide[:])
	}
}

// The parts of the header of an array (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html), which is a literal of Python.
var (
	descr   = regexp.MustCompile(`'descr': '[<|]([ui])([1248])'`)
	fortran = regexp.MustCompile(`'fortran_order': False`)
	shape   = regexp.MustCompile(`'shape': \((\d{1,9}), (\d{1,9}), (\d{1,9}),? *\)`)
)

// array reads an array of numpy with three dimensions.
func array(raw []byte) (*Picks, error) {
	if len(raw) < 12 {
		return nil, errors.New("the array has no header")
	}
	start, length := 10, int(binary.LittleEndian.Uint16(raw[8:]))
	if raw[6] >= 2 {
		start, length = 12, int(min(binary.LittleEndian.Uint32(raw[8:]), maxHeader+1))
	}
	if length > maxHeader || len(raw) < start+length {
		return nil, errors.New("the header of the array is cut off, or too long")
	}
	header, data := raw[start:start+length], raw[start+length:]
	kind, dims := descr.FindSubmatch(header), shape.FindSubmatch(header)
	if kind == nil || dims == nil || !fortran.Match(header) {
		return nil, errors.New("the array is not of whole numbers in three dimensions")
	}
	var n [3]int
	size, all := int(kind[2][0]-'0'), 1
	for i := range n {
		n[i], _ = strconv.Atoi(string(dims[i+1])) // of 9 digits at most
		if n[i] == 0 || n[i] > maxPicks/all {
			return nil, errors.New("the array is empty, or too large")
		}
		all *= n[i]
	}
	if len(data) != all*size {
		return nil, fmt.Errorf("the array has %d bytes, where %d numbers take %d", len(data), all, all*size)
	}
	return &Picks{n[0], n[1], n[2], cells(data, size)}, nil
}

// row reads the picks of a token in a layer; false if they cannot be picks, which are of different experts: dense layers have numbers, too, and of no
// meaning.
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
