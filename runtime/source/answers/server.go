package answers

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
)

// Bounds of what is kept of a server.
const (
	MaxName     = 200 // characters of a name from outside
	maxModels   = 8   // names of models
	maxPaths    = 8   // paths that are named whose streams are not measured
	maxWarnings = 64  // warnings: why an answer cannot be decompressed may differ each time
)

// Server is a server whose answers are read. It emits its state, its models and the experts that it picks, and counts what
// could not be measured. It is safe for concurrent use.
type Server struct {
	now         func() event.Time
	expertsUsed int
	sink        event.Sink // set by Start

	picking sync.Mutex    // guards picks; held until their counts are emitted, so that counts only grow
	picks   event.Experts // so far

	mu       sync.Mutex // guards the fields below
	engine   event.EngineInfo
	models   []string
	warnings map[[2]string]uint64 // by sentence and what is counted
	paths    int                  // of warnings, those about a path
}

// NewServer returns a server that has not started. now returns the time of its events. expertsUsed is how many experts a
// token picks, for servers that do not report it; 0: unknown.
func NewServer(now func() event.Time, expertsUsed int) *Server {
	return &Server{now: now, expertsUsed: expertsUsed, warnings: map[[2]string]uint64{}}
}

// Start sets where events go, and emits the first state. The caller calls it once, before all but Warnings.
func (s *Server) Start(sink event.Sink, engine event.EngineInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sink, s.engine = sink, engine
	s.introduce()
}

// Update changes the state, and emits it if that changed it.
func (s *Server) Update(change func(*event.EngineInfo)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.engine
	if change(&s.engine); s.engine != before {
		s.introduce()
	}
}

// introduce emits the current state. The caller holds mu.
func (s *Server) introduce() {
	engine := s.engine
	s.sink.Emit(event.Event{Kind: event.KindEngine, At: s.now(), Layer: -1, Data: &engine})
}

// Can adds capabilities to what the server reports.
func (s *Server) Can(caps event.Caps) { s.Update(func(e *event.EngineInfo) { e.Caps |= caps }) }

// Runs sets the program that runs the model, which an answer shows.
func (s *Server) Runs(name string) { s.Update(func(e *event.EngineInfo) { e.Provider = name }) }

// Model adds a model that answered, and emits all names so far.
func (s *Server) Model(name string) {
	name = clean.Cut(name, MaxName)
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == "" || len(s.models) == maxModels || slices.Contains(s.models, name) {
		return
	}
	s.models = append(s.models, name)
	s.sink.Emit(event.Event{
		Kind: event.KindModel, At: s.now(), Layer: -1, Data: &event.Model{Name: strings.Join(s.models, ", ")},
	})
}

// Warnings about what could not be measured well; see Unread and uncountedPicks for the others.
const (
	ITLOfMessages  = "the server does not report tokens per message: ITL is the time between messages"
	NoTPOT         = "the server's token count does not fit the text that it streamed, for example because of hidden reasoning: TPOT is not reported"
	MessageIsToken = "the server does not report generated tokens: each message with text counts as one token"
	clumped        = "most messages of a stream arrived together with others: something buffers it, such as nginx (proxy_buffering), a proxy that compresses, or the server itself; gaps inside a clump are not those of the model"
)

// Unread returns the warning about an answer that could not be read completely.
func Unread(why string) string {
	return "an answer could not be read: " + why
}

const (
	requests      = "requests" // what most warnings count
	otherWarnings = "other warnings"
)

// Warn counts a request that a warning applies to. It logs the first one.
func (s *Server) Warn(text string) { s.warn([2]string{text, requests}) }

// WarnConnection is Warn for a connection.
func (s *Server) WarnConnection(text string) { s.warn([2]string{text, "connections"}) }

func (s *Server) warn(w [2]string) {
	s.mu.Lock()
	if s.warnings[w] == 0 && len(s.warnings) >= maxWarnings {
		w[0] = otherWarnings
	}
	s.warnings[w]++
	first := s.warnings[w] == 1
	s.mu.Unlock()
	if first {
		s.sink.Emit(event.Event{Kind: event.KindLog, At: s.now(), Layer: -1, Text: w[0]})
	}
}

// Unmeasured counts an answer on a path that is not measured, if it is the stream of a POST request.
func (s *Server) Unmeasured(method, path string, status int, header http.Header) {
	if method != http.MethodPost || status != http.StatusOK || !IsStream(header) {
		return
	}
	text := "streams on " + clean.Cut(path, MaxName) + " are not measured: their format is not known"
	s.mu.Lock()
	_, known := s.warnings[[2]string{text, requests}]
	if !known {
		s.paths++
	}
	ok := known || s.paths <= maxPaths
	s.mu.Unlock()
	if ok {
		s.Warn(text)
	}
}

// Warnings returns sentences about what could not be measured well, each with the number of requests or connections that it
// applies to, in the order of the alphabet.
func (s *Server) Warnings() (lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w, n := range s.warnings {
		lines = append(lines, fmt.Sprintf("%s (%s: %d)", w[0], w[1], n))
	}
	slices.Sort(lines)
	return lines
}

// Stop emits what warnings applied to, for recordings, which have no more than the log, and that the server has stopped.
func (s *Server) Stop() {
	for _, line := range s.Warnings() {
		s.sink.Emit(event.Event{Kind: event.KindLog, At: s.now(), Layer: -1, Text: line})
	}
	s.Update(func(e *event.EngineInfo) { e.State = event.EngineStopped })
}

// errNoUsage means that picks cannot be counted because the prompt's share is unknown.
var errNoUsage = errors.New("the answer has no token usage, so prompt and output picks cannot be separated")

// uncountedPicks returns the warning for picks that were not counted.
func uncountedPicks(why error) string {
	const words = "expert picks in answers were not counted: "
	switch {
	case errors.Is(why, errNoUsage):
		return words + errNoUsage.Error()
	case errors.Is(why, errShape):
		return words + "set --experts-used to the number of experts per token"
	}
	return words + "unknown format"
}

// countPicks counts the expert picks of a completed answer.
func (s *Server) countPicks(sum *Message) error {
	if sum.Routed == "" {
		return nil
	}
	if sum.Prompt == 0 || sum.Generated == 0 {
		return errNoUsage
	}
	rows, _ := pickedRows(sum, 0)
	p, err := DecodePicks([]byte(sum.Routed), s.expertsUsed, rows)
	if err != nil {
		return err
	}
	_, prompt := pickedRows(sum, p.Tokens)
	s.picking.Lock()
	defer s.picking.Unlock()
	counts, err := p.addTo(&s.picks, prompt)
	if err != nil {
		return err
	}
	s.Can(event.CapExperts)
	s.sink.Emit(event.Event{Kind: event.KindExperts, At: s.now(), Layer: -1, Data: counts})
	return nil
}

// pickedRows returns how many tokens an answer has picks for, and how many of them are prompt tokens: all tokens but the
// last, without those at the beginning that the client did not request. reported is the number of tokens in the
// answer's picks, 0 if unknown.
func pickedRows(sum *Message, reported int) (rows, prompt int) {
	rows = sum.Prompt + sum.Generated - 1
	if reported == 0 || reported > rows || sum.Answers > 1 {
		return rows, sum.Prompt
	}
	return reported, max(sum.Prompt-(rows-reported), 0)
}
