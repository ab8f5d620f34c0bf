// Package zmq follows what servers publish over ZMQ: vLLM's and SGLang's events of blocks in the KV cache, and the metrics of forward passes of SGLang.
// It subscribes and sends nothing else. What a publisher drops for a subscriber that is slow or away is counted as lost, by the numbers of its messages.
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
	"github.com/llmtop/llmtop/runtime"
)

// How long is waited before the next attempt to connect.
const (
	firstWait = 200 * time.Millisecond
	lastWait  = 10 * time.Second
)

// Source is a runtime.Source of what a publisher tells.
type Source struct {
	at, network, where string
	clock              runtime.Clock
	losses             *Losses
	sink               event.Sink

	mu      sync.Mutex // guards what follows
	sum     sums
	met     bool                // a message has come
	passes  bool                // forward passes are told
	numbers map[string]numbered // by topic
}

// numbered is where the numbers of messages are.
type numbered struct {
	last uint64
	kind event.Kind
}

// maxTopics bounds the topics whose numbers are followed.
const maxTopics = 256

// Losses count what was lost of the messages of all publishers of one server. The zero value is ready.
type Losses struct {
	mu   sync.Mutex
	lost event.Lost
}

// add counts, and hands out how many there are in all.
func (l *Losses) add(kind event.Kind, n uint64) *event.Lost {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost[kind] += n
	lost := l.lost
	return &lost
}

// New prepares to follow a publisher at tcp://HOST:PORT or ipc://PATH. Errors: the address.
func New(at string, clock runtime.Clock, losses *Losses) (*Source, error) {
	network, where, err := address(at)
	if err != nil {
		return nil, err
	}
	return &Source{at: at, network: network, where: where, clock: clock, losses: losses, numbers: map[string]numbered{}}, nil
}

// Address is where the publisher is.
func (s *Source) Address() string { return s.at }

// Run implements runtime.Source. It goes on for as long as ctx, whatever the publisher does.
func (s *Source) Run(ctx context.Context, sink event.Sink) error {
	s.sink = sink
	wait, said := firstWait, ""
	for {
		came, err := s.follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if came {
			wait, said = firstWait, ""
		}
		if words := err.Error(); words != said {
			said = words
			s.say("%s: %s", s.at, words)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		wait = min(2*wait, lastWait)
	}
}

// follow takes messages until the connection ends; came says that there were any.
func (s *Source) follow(ctx context.Context) (came bool, err error) {
	dialer := net.Dialer{Timeout: shakeWithin}
	raw, err := dialer.DialContext(ctx, s.network, s.where)
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
			s.garbage(err)
		}
	}
}

func (s *Source) say(format string, args ...any) {
	s.sink.Emit(event.Event{Kind: event.KindLog, At: s.clock.Now(), Layer: -1, Text: "zmq: " + fmt.Sprintf(format, args...)})
}

// garbage counts a message that could not be understood, and says so of the first.
func (s *Source) garbage(err error) {
	s.mu.Lock()
	s.sum.garbage++
	first := s.sum.garbage == 1
	s.mu.Unlock()
	if first {
		s.say("%s: a message could not be understood: %v", s.at, err)
	}
}

// take takes in a message: its topic, its number, and what it says.
func (s *Source) take(frames [][]byte) error {
	if len(frames) != 3 || len(frames[1]) != 8 {
		return errors.New("it is not made of a topic, a number and a payload")
	}
	what, err := read(frames[2])
	s.mu.Lock()
	defer s.mu.Unlock()
	topic, n := string(frames[0]), binary.BigEndian.Uint64(frames[1])
	if err != nil {
		if before, known := s.numbers[topic]; known { // it has come all the same, and is not lost
			s.number(topic, before.kind, n)
		}
		return err
	}
	kind := event.KindKV
	if what.pass != nil {
		kind = event.KindStep
	}
	s.number(topic, kind, n)
	s.met = true
	s.sum.add(what)
	if what.pass != nil {
		s.passes = true
		s.step(what.pass)
	}
	return nil
}

// number counts what is missing before a message. Numbers that go back are those of a publisher that was started anew.
func (s *Source) number(topic string, kind event.Kind, n uint64) {
	before, known := s.numbers[topic]
	if !known && len(s.numbers) >= maxTopics {
		return
	}
	s.numbers[topic] = numbered{n, kind}
	if !known || n <= before.last+1 {
		return
	}
	s.sink.Emit(event.Event{Kind: event.KindLost, At: s.clock.Now(), Layer: -1, Data: s.losses.add(kind, n-before.last-1)})
}

// step tells of a forward pass. A heartbeat of an idle engine is none.
func (s *Source) step(p *pass) {
	if p.took <= 0 {
		return
	}
	s.sink.Emit(event.Event{
		Kind: event.KindStep, At: s.clock.Now(), Layer: -1, Step: p.number, Dur: int64(p.took), N: p.decodes, Prompt: p.prefill, Data: &p.Pass,
	})
}

// Passes reports whether the publisher tells of forward passes.
func (s *Source) Passes() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.passes
}

// Numbers are what has come since they were asked for last, ascending by name; nil before the first message.
func (s *Source) Numbers() []event.Number {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.met {
		return nil
	}
	out := s.sum.numbers(s.passes)
	s.sum = sums{garbage: s.sum.garbage, blocks: s.sum.blocks}
	return out
}
