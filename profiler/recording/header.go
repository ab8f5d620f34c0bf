package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// The format versions. A reader reads all minor versions of the major versions that it supports.
const (
	majorVersion   = 1 // recordings of one engine
	severalVersion = 2 // recordings of several engines: entries have an engine number
	minorVersion   = 0
)

const (
	preamble  = 20       // bytes before the header's JSON
	maxHeader = 64 << 10 // bytes of JSON
)

// magic starts each segment. Its first byte is not text; its last byte reveals text-mode transfers.
var magic = [8]byte{0x89, 'L', 'L', 'M', 'T', 'O', 'P', '\n'}

// ErrNotRecording is returned for a file that does not start like a recording.
var ErrNotRecording = errors.New("not a recording")

// Header is the header of a segment.
type Header struct {
	Recording   string     `json:"recording"`     // random id, equal in all segments of a recording
	Segment     int        `json:"segment"`       // from 0
	Program     string     `json:"program"`       // recording program and its version
	Codec       string     `json:"codec"`         // codec of the lines
	Epoch       int64      `json:"epoch_unix_ns"` // wall clock at time 0
	Start       event.Time `json:"start_ns"`      // start of the segment
	MultiEngine bool       `json:"-"`             // of several engines; encoded in the version

	Conditions *Conditions `json:"conditions,omitempty"` // nil: not recorded
}

// Conditions are what a recorded session depended on besides its events. Unknown ones are empty.
type Conditions struct {
	Command  string            `json:"command,omitempty"`  // arguments of llmtop that repeat the run
	Settings map[string]string `json:"settings,omitempty"` // by flag name
	OS       string            `json:"os,omitempty"`       // of the recording machine
	Arch     string            `json:"arch,omitempty"`
	CPU      string            `json:"cpu,omitempty"`
	Cores    int               `json:"cores,omitempty"`
	Local    bool              `json:"local,omitempty"` // the only engine ran on the recording machine
}

// Wall returns the wall clock at a time of the recording.
func (h *Header) Wall(at event.Time) time.Time { return time.Unix(0, h.Epoch).Add(time.Duration(at)) }

// encode encodes the header.
func (h *Header) encode() ([]byte, error) {
	meta, err := json.Marshal(h)
	if err == nil && len(meta) > maxHeader { // only settings can be that long
		short := *h
		short.Conditions = nil
		meta, err = json.Marshal(short)
	}
	if err != nil {
		return nil, err
	}
	b := make([]byte, preamble, preamble+len(meta))
	copy(b, magic[:])
	version := uint16(majorVersion)
	if h.MultiEngine {
		version = severalVersion
	}
	le.PutUint16(b[8:], version)
	le.PutUint16(b[10:], minorVersion)
	le.PutUint32(b[12:], uint32(len(meta)))
	sum := crc32.Update(crc32.Checksum(b[:16], castagnoli), castagnoli, meta)
	le.PutUint32(b[16:], sum)
	return append(b, meta...), nil
}

// readHeader reads the header of a segment; n is the offset of the first frame.
func readHeader(r io.ReaderAt) (h Header, n int64, err error) {
	var b [preamble]byte
	if m, err := r.ReadAt(b[:], 0); m < preamble {
		if err == io.EOF {
			err = ErrNotRecording
		}
		return h, 0, err
	}
	if [8]byte(b[:]) != magic {
		return h, 0, ErrNotRecording
	}
	version := le.Uint16(b[8:])
	if version > severalVersion {
		return h, 0, fmt.Errorf("its format has version %d, this llmtop reads up to %d: use a newer llmtop", version, severalVersion)
	}
	size := le.Uint32(b[12:])
	if size > maxHeader {
		return h, 0, errors.New("its header is damaged")
	}
	meta := make([]byte, size)
	if m, err := r.ReadAt(meta, preamble); m < len(meta) {
		if err == io.EOF {
			err = errors.New("its header is cut off")
		}
		return h, 0, err
	}
	if crc32.Update(crc32.Checksum(b[:16], castagnoli), castagnoli, meta) != le.Uint32(b[16:]) {
		return h, 0, errors.New("its header is damaged")
	}
	if err := json.Unmarshal(meta, &h); err != nil {
		return h, 0, fmt.Errorf("its header is damaged: %w", err)
	}
	if !h.Start.Plausible() || !event.Time(h.Epoch).Plausible() {
		return h, 0, errors.New("its header is damaged: implausible times")
	}
	h.MultiEngine = version == severalVersion
	return h, preamble + int64(size), nil
}
