package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// version is the version of the format. It also changes when the lines of the event protocol get a new major version.
const version = 1

// ErrNotRecording is returned for a file that does not start like a recording.
var ErrNotRecording = errors.New("not a recording")

// Header is the first line of a segment.
type Header struct {
	Type        string     `json:"recording"` // headerType
	Version     int        `json:"version"`
	ID          string     `json:"id"`                // random, equal in all segments of a recording
	Segment     int        `json:"segment"`           // from 0
	Program     string     `json:"program"`           // recording program and its version
	Epoch       int64      `json:"epoch_unix_ns"`     // wall clock at time 0
	Start       event.Time `json:"at"`                // start of the segment
	MultiEngine bool       `json:"several,omitempty"` // of several engines

	Conditions *Conditions `json:"conditions,omitempty"` // nil: not recorded
}

const headerType = "start"

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

// encode encodes the header as a line.
func (h Header) encode() ([]byte, error) {
	h.Type, h.Version = headerType, version
	line, err := json.Marshal(h)
	if err == nil && len(line) >= maxHeader { // only settings can be that long
		h.Conditions = nil
		line, err = json.Marshal(h)
	}
	return append(line, '\n'), err
}

// readHeader reads the header of a segment, which is its first frame.
func (s *scanner) readHeader() (h Header, err error) {
	f, err := s.measure(0)
	if errors.Is(err, io.EOF) || errors.Is(err, errFrame) {
		err = ErrNotRecording
	}
	if err != nil {
		return h, err
	}
	line, ok, err := s.read(f)
	if err != nil {
		return h, err
	}
	if !ok {
		return h, errors.New("its header is damaged")
	}
	if !bytes.HasPrefix(line, notePrefix) || json.Unmarshal(line, &h) != nil || h.Type != headerType {
		return h, ErrNotRecording
	}
	if h.Version > version {
		return h, fmt.Errorf("its format has version %d, this llmtop reads up to %d: use a newer llmtop", h.Version, version)
	}
	if !h.Start.Plausible() || !event.Time(h.Epoch).Plausible() {
		return h, errors.New("its header is damaged: implausible times")
	}
	s.off = f.end
	return h, nil
}
