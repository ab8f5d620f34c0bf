// Package fleet watches the replicas of inference engines through a Prometheus that scrapes them already: a few queries tell of all of them, however
// many there are, and none of the replicas is asked anything. What Prometheus has stored of a replica is read as a scrape of it would be, so that
// counters, histograms and restarts mean the same.
package fleet

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/scrape/fetch"
	"github.com/llmtop/llmtop/runtime/scrape/gather"
	"github.com/llmtop/llmtop/runtime/scrape/identify"
)

// The bounds of what is asked.
const (
	MaxReplicas  = 2000             // that are shown; what is beyond is told, and left out
	answerWithin = 15 * time.Second // for an answer
	answerBytes  = 128 << 20        // of an answer, unpacked
	namesEvery   = time.Minute      // how often new names of metrics are looked for
	longestWait  = 15 * time.Second // between attempts at a Prometheus that does not answer
	seedBefore   = time.Minute      // the past that rates begin with, so that there are some at once
	longestGap   = 2 * time.Minute  // between scrapes that are believed
)

// Options say which Prometheus is asked, and for what.
type Options struct {
	Address  string        // http://HOST:PORT
	Key      string        // sent to Prometheus and nowhere else; "": none
	Match    string        // which targets, as ParseMatch returns it; "": all
	Interval time.Duration // how often Prometheus is asked whether there is something new
	Clock    runtime.Clock
	// Meet is told of each replica as it comes, once, and returns where its events go. It must not wait.
	Meet func(name string) event.Sink

	within time.Duration // for an answer; 0: answerWithin
}

// Source asks one Prometheus.
type Source struct {
	opt    Options
	client *fetch.Client
	sink   event.Sink // of Prometheus itself
	self   event.Engine

	names     []string // of metrics that there are
	namedAt   time.Time
	replicas  map[target]*replica
	jobs      map[string]bool // of which targets are engines
	gap       float64         // s between scrapes, as far as seen; 0: not yet
	readAt    float64         // s since 1970 of Prometheus, when the metrics were last asked for
	wait      time.Duration
	answering int // targets
	left      int // replicas that were left out
	text      bytes.Buffer
}

// target is what Prometheus scrapes.
type target struct{ job, instance string }

func (t target) compare(o target) int {
	return cmp.Or(cmp.Compare(t.instance, o.instance), cmp.Compare(t.job, o.job))
}

// New prepares to ask a Prometheus; nothing is sent until Run. Errors: the address.
func New(opt Options) (*Source, error) {
	client, err := fetch.New(opt.Address, fetch.Options{Key: opt.Key, Within: cmp.Or(opt.within, answerWithin), Bytes: answerBytes})
	if err != nil {
		return nil, fmt.Errorf("ask Prometheus: %w", err)
	}
	s := &Source{opt: opt, client: client, replicas: make(map[target]*replica), jobs: make(map[string]bool)}
	s.self = event.Engine{
		Name: "Prometheus", Caps: event.CapReports, State: event.EngineReady, Epoch: opt.Clock.Epoch(),
		Remote: event.Remote{Address: client.Address(), Link: event.LinkDisconnected, Why: "not asked yet"},
	}
	return s, nil
}

// Address is where Prometheus is.
func (s *Source) Address() string { return s.client.Address() }

// Run asks for as long as ctx, whatever Prometheus does. What it says of itself goes to sink.
func (s *Source) Run(ctx context.Context, sink event.Sink) error {
	s.sink = sink
	defer s.client.Close()
	for ctx.Err() == nil {
		err := s.poll(ctx)
		if ctx.Err() != nil {
			break
		}
		s.linked(err)
		select {
		case <-ctx.Done():
		case <-time.After(max(s.wait, s.opt.Interval)):
		}
	}
	return nil
}

// poll asks whether there is something new, and for it.
func (s *Source) poll(ctx context.Context) error {
	states, now, err := s.look(ctx)
	if err != nil {
		return err
	}
	answering := 0
	for _, st := range states {
		answering += int(st.value)
	}
	others := answering != s.answering // of which new metrics may have come
	if others || time.Since(s.namedAt) > namesEvery || len(s.names) == 0 {
		if err := s.findNames(ctx); err != nil {
			return err
		}
	}
	if len(s.names) > 0 && (others || s.worthReading(states, now)) {
		if err := s.read(ctx, states, now); err != nil {
			return err
		}
	}
	s.answering = answering
	if err := s.meetDown(ctx, states, now); err != nil {
		return err
	}
	if len(s.replicas) == 0 {
		return errors.New("it has no metrics of an engine that llmtop knows, of the last minutes")
	}
	s.settle(states, now)
	return nil
}

// worthReading reports whether to ask for the metrics of all replicas: when half of them have something new, and once a scrape in any case.
func (s *Source) worthReading(states map[target]state, now float64) bool {
	fresh := 0
	for t, r := range s.replicas {
		if states[t].value > 0 && states[t].at > r.sampled {
			fresh++
		}
	}
	due := now-s.readAt >= s.gap
	return fresh > 0 && (due || 2*fresh >= len(s.replicas)) || now-s.readAt >= seedBefore.Seconds()
}

// state is what Prometheus knows of a target.
type state struct {
	at    float64 // s since 1970, of the last scrape
	value float64 // 1: it has answered
	pod   string  // what Kubernetes calls it
}

// look asks for the state of all targets, and when that is.
func (s *Source) look(ctx context.Context) (map[target]state, float64, error) {
	states, now := make(map[target]state), 0.0
	err := s.query(ctx, selects("up", "", s.opt.Match), 0, func(p *Sample) {
		states[targetOf(p)] = state{value: p.Value, pod: p.Metric["pod"]}
		now = p.At
	})
	switch {
	case err != nil:
		return nil, 0, err
	case len(states) == 0 && s.opt.Match != "":
		return nil, 0, fmt.Errorf("it has no target with {%s}", s.opt.Match)
	case len(states) == 0:
		return nil, 0, errors.New("it has no targets")
	}
	return states, now, s.stamps(ctx, states, now)
}

// stamps fills in when each target was scraped last, as known at a time.
func (s *Source) stamps(ctx context.Context, states map[target]state, at float64) error {
	return s.query(ctx, "timestamp("+selects("up", "", s.opt.Match)+")", at, func(p *Sample) {
		if st, ok := states[targetOf(p)]; ok {
			st.at = p.Value
			states[targetOf(p)] = st
		}
	})
}

func targetOf(p *Sample) target { return target{p.Metric["job"], p.Metric["instance"]} }

// findNames looks for the metrics of engines that there are.
func (s *Source) findNames(ctx context.Context) error {
	var quoted []string
	for _, p := range gather.Prefixes {
		quoted = append(quoted, regexp.QuoteMeta(p))
	}
	var names []string
	pattern := "(" + strings.Join(quoted, "|") + ").*"
	err := s.query(ctx, "count by(__name__)("+selects("", pattern, s.opt.Match)+")", 0, func(p *Sample) {
		name := p.Metric["__name__"]
		if _, ok := gather.KindOf(name); ok {
			names = append(names, name)
		}
	})
	if err != nil || len(names) == 0 {
		return err
	}
	slices.Sort(names)
	s.names, s.namedAt = append(slices.Compact(names), gather.Started), time.Now()
	return nil
}

// read asks for the metrics of all replicas, the first time also for those of a minute before, and hands them on.
func (s *Source) read(ctx context.Context, states map[target]state, now float64) error {
	if s.readAt == 0 {
		then := now - seedBefore.Seconds()
		before := make(map[target]state, len(states))
		for t, st := range states {
			before[t] = state{pod: st.pod}
		}
		if err := s.stamps(ctx, before, then); err != nil {
			return err
		}
		if err := s.take(ctx, before, then, now); err != nil {
			return err
		}
	}
	if err := s.take(ctx, states, now, now); err != nil {
		return err
	}
	s.readAt = now
	return nil
}

// take asks for the metrics as they were known at a time, and gives each replica its own.
func (s *Source) take(ctx context.Context, states map[target]state, at, now float64) error {
	texts, words := make(map[target][]line), make(interned)
	pattern := strings.Join(s.names, "|")
	if err := s.query(ctx, selects("", pattern, s.opt.Match), at, func(p *Sample) {
		t := targetOf(p)
		texts[t] = append(texts[t], lineOf(p, words))
	}); err != nil {
		return err
	}
	for _, t := range slices.SortedFunc(maps.Keys(texts), target.compare) {
		st, lines := states[t], texts[t]
		if kind := kindOf(lines); kind != identify.Unknown && st.at > 0 {
			s.jobs[t.job] = true
			s.feed(t, st, kind, lines, now)
		}
	}
	return nil
}

// feed gives a replica what Prometheus has of it, unless that is what it had before.
func (s *Source) feed(t target, st state, kind identify.Kind, lines []line, now float64) {
	r := s.replicas[t]
	if r == nil {
		if r = s.meet(t, st); r == nil {
			return
		}
	}
	if st.at <= r.sampled {
		return
	}
	if r.sampled > 0 && s.readAt > 0 { // not from the past that rates begin with
		s.paced(st.at - r.sampled)
	}
	r.read(kind, lines, &s.text, st.at, max(s.before(st.at, now), 1))
}

// paced takes the time between two scrapes: the shortest one counts, since some may have been missed.
func (s *Source) paced(gap float64) {
	if gap > 0 && gap < longestGap.Seconds() && (s.gap == 0 || gap < s.gap) {
		s.gap = gap
	}
}

// before is a time of Prometheus, where it is now, on the clock of the session; below 0 if it was before that.
func (s *Source) before(at, now float64) event.Time {
	return s.opt.Clock.Now() - event.Time(max(now-at, 0)*1e9)
}

// query asks for an instant vector at a time, in s since 1970; 0: now.
func (s *Source) query(ctx context.Context, promQL string, at float64, each func(*Sample)) error {
	in := url.Values{"query": {promQL}}
	if at > 0 {
		in.Set("time", strconv.FormatFloat(at, 'f', 3, 64))
	}
	a, err := s.client.Get(ctx, "/api/v1/query?"+in.Encode())
	if err != nil {
		return err
	}
	defer a.Close()
	if err := a.Refusal(); err != nil {
		return err
	}
	err = decode(a.Body, each)
	if errors.Is(err, errNone) && a.Is("text/html") {
		return errors.New("answers a web page")
	}
	return err
}
