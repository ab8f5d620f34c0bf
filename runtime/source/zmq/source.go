// Package zmq receives what servers publish over ZMQ: KV cache block events of vLLM and SGLang, and SGLang's metrics of
// forward passes. It only subscribes. Messages that a publisher drops for a slow or disconnected subscriber are counted
// as dropped, by the gaps in message numbers.
package zmq

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// Shortest and longest wait between connection attempts.
const (
	firstWait = 200 * time.Millisecond
	lastWait  = 10 * time.Second
)

// Subscriber is an engine.Source for one publisher.
type Subscriber struct {
	at, network, hostOrPath string
	clock                   engine.Clock
	losses                  *Losses
	sink                    event.Sink

	mu       sync.Mutex // guards the fields below
	sum      sums
	warned   bool                // a malformed message was logged
	received bool                // a message was received
	passes   bool                // forward passes are published
	numbers  map[string]numbered // by topic
}

// numbered is the last message number of a topic.
type numbered struct {
	last uint64
	kind event.Kind
}

// maxTopics limits the topics whose numbers are tracked.
const maxTopics = 256

// Losses counts the dropped messages of all publishers of one server. The zero value is ready.
type Losses struct {
	mu   sync.Mutex
	lost event.Drops
}

// add adds n and returns the totals.
func (l *Losses) add(kind event.Kind, n uint64) *event.Drops {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost[kind] += n
	lost := l.lost
	return &lost
}

// New prepares a subscriber for a publisher at tcp://HOST:PORT or ipc://PATH.
func New(at string, clock engine.Clock, losses *Losses) (*Subscriber, error) {
	network, where, err := address(at)
	if err != nil {
		return nil, err
	}
	return &Subscriber{at: at, network: network, hostOrPath: where, clock: clock, losses: losses, numbers: map[string]numbered{}}, nil
}

// Address returns the publisher's address.
func (s *Subscriber) Address() string { return s.at }

// Run implements engine.Source. It reconnects until ctx ends.
func (s *Subscriber) Run(ctx context.Context, sink event.Sink) error {
	s.sink = sink
	wait, logged := firstWait, ""
	for {
		came, err := s.follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if came {
			wait, logged = firstWait, ""
		}
		if text := err.Error(); text != logged {
			logged = text
			s.log("%s: %s", s.at, text)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		wait = min(2*wait, lastWait)
	}
}

// follow receives messages until the connection ends; came reports whether there were any.
func (s *Subscriber) follow(ctx context.Context) (came bool, err error) {
	dialer := net.Dialer{Timeout: shakeWithin}
	raw, err := dialer.DialContext(ctx, s.network, s.hostOrPath)
	if err != nil {
		return false, err
	}
	defer raw.Close()
	defer context.AfterFunc(ctx, func() { _ = raw.Close() })()
	k, err := shake(raw)
	if err != nil {
		return false, err
	}
	for {
		frames, err := k.message()
		if err != nil {
			return came, fmt.Errorf("connection ended: %w", err)
		}
		came = true
		if err := s.take(frames); err != nil {
			s.malformed(err)
		}
	}
}

func (s *Subscriber) log(format string, args ...any) {
	s.sink.Emit(event.Event{Kind: event.KindLog, At: s.clock.Now(), Layer: -1, Text: "zmq: " + fmt.Sprintf(format, args...)})
}

// malformed counts a malformed message and logs the first one.
func (s *Subscriber) malformed(err error) {
	s.mu.Lock()
	s.sum.malformed++
	first := !s.warned
	s.warned = true
	s.mu.Unlock()
	if first {
		s.log("%s: malformed message: %v", s.at, err)
	}
}

// take processes a message: topic, number and payload.
func (s *Subscriber) take(frames [][]byte) error {
	if len(frames) != 3 || len(frames[1]) != 8 {
		return errors.New("not a topic, a number and a payload")
	}
	what, err := read(frames[2])
	s.mu.Lock()
	defer s.mu.Unlock()
	topic, n := string(frames[0]), binary.BigEndian.Uint64(frames[1])
	if err != nil {
		if before, ok := s.numbers[topic]; ok { // received, so not dropped
			s.number(topic, before.kind, n)
		}
		return err
	}
	kind := event.KindKV
	if what.pass != nil {
		kind = event.KindStep
	}
	s.number(topic, kind, n)
	s.received = true
	s.sum.add(what)
	if what.pass != nil {
		s.passes = true
		s.step(what.pass)
	}
	return nil
}

// number counts the messages missing before message n. A lower number than before means that the publisher restarted.
func (s *Subscriber) number(topic string, kind event.Kind, n uint64) {
	before, seen := s.numbers[topic]
	if !seen && len(s.numbers) >= maxTopics {
		return
	}
	s.numbers[topic] = numbered{n, kind}
	if !seen || n <= before.last+1 {
		return
	}
	s.sink.Emit(event.Event{Kind: event.KindDrops, At: s.clock.Now(), Layer: -1, Data: s.losses.add(kind, n-before.last-1)})
}

// step emits a forward pass. It ignores heartbeats of an idle engine.
func (s *Subscriber) step(p *pass) {
	if p.took <= 0 {
		return
	}
	s.sink.Emit(event.Event{
		Kind: event.KindStep, At: s.clock.Now(), Layer: -1, Step: p.number, Dur: int64(p.took), N: p.decodes, Prompt: p.prefill, Data: &p.Pass,
	})
}

// Passes reports whether the publisher sends forward passes.
func (s *Subscriber) Passes() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.passes
}

// Numbers returns the sums since the last call, ascending by name; nil before the first message.
func (s *Subscriber) Numbers() []event.NamedReading {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.received {
		return nil
	}
	out := s.sum.numbers(s.passes)
	s.sum = sums{blocks: s.sum.blocks}
	return out
}
