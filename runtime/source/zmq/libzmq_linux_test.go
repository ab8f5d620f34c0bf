//go:build amd64 || arm64

package zmq

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/source/peer"
)

// Constants of zmq.h.
const (
	zmqPUB          = 1
	zmqSNDMORE      = 2
	zmqLINGER       = 17
	zmqSNDHWM       = 23
	zmqLASTENDPOINT = 32
	zmqHEARTBEAT    = 75 // ms between two PINGs
	zmqTIMEOUT      = 77 // ms until a PONG must arrive
)

// empty is an empty batch of KV events.
var empty = []byte("\x92\x01\x90")

// libzmq are its functions, with int as int32.
type libzmq struct {
	ctxNew  func() uintptr
	ctxTerm func(ctx uintptr) int32
	socket  func(ctx uintptr, kind int32) uintptr
	close   func(socket uintptr) int32
	set     func(socket uintptr, option int32, value *int32, size uint64) int32
	get     func(socket uintptr, option int32, value *byte, size *uint64) int32
	bind    func(socket uintptr, at string) int32
	send    func(socket uintptr, data *byte, size uint64, flags int32) int32
	errno   func() int32 // of the thread
}

// open loads the real libzmq. It loads the libraries in its folder first: an unpacked library that is not installed finds
// its dependencies only there.
func open(t *testing.T) (z libzmq) {
	t.Helper()
	path := peer.Path(t, peer.LibzmqEnv)
	libraries, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*.so.*"))
	if err != nil {
		t.Fatal(err)
	}
	lib, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	for range libraries { // in any order of dependency
		if err == nil {
			break
		}
		for _, other := range libraries {
			_, _ = purego.Dlopen(other, purego.RTLD_NOW|purego.RTLD_GLOBAL)
		}
		lib, err = purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, into := range map[string]any{
		"ctx_new": &z.ctxNew, "ctx_term": &z.ctxTerm, "socket": &z.socket, "close": &z.close, "setsockopt": &z.set,
		"getsockopt": &z.get, "bind": &z.bind, "send": &z.send, "errno": &z.errno,
	} {
		purego.RegisterLibFunc(into, lib, "zmq_"+name)
	}
	return z
}

// server is a publishing socket of the real libzmq that numbers messages as engines do.
type server struct {
	t      *testing.T
	z      libzmq
	ctx    uintptr
	socket uintptr
	at     string // bound address
	next   uint64
}

// serve binds a publisher; options are pairs of a number and a value.
func serve(t *testing.T, at string, options ...int32) *server {
	t.Helper()
	p := &server{t: t, z: open(t)}
	p.ctx = p.z.ctxNew()
	p.bind(at, options...)
	t.Cleanup(func() {
		p.stop()
		p.z.ctxTerm(p.ctx)
	})
	return p
}

func (p *server) bind(at string, options ...int32) {
	p.t.Helper()
	p.socket = p.z.socket(p.ctx, zmqPUB)
	for o := append([]int32{zmqLINGER, 0}, options...); len(o) > 1; o = o[2:] {
		if p.z.set(p.socket, o[0], &o[1], 4) != 0 {
			p.t.Fatalf("libzmq does not take option %d", o[0])
		}
	}
	eventtest.Wait(p.t, "libzmq to bind "+at, func() bool { return p.z.bind(p.socket, at) == 0 }) // the previous socket may still be closing
	where := make([]byte, 256)
	size := uint64(len(where))
	if p.z.get(p.socket, zmqLASTENDPOINT, &where[0], &size) != 0 {
		p.t.Fatal("libzmq does not report its address")
	}
	p.at = string(bytes.TrimRight(where[:size], "\x00"))
}

// stop closes the socket, as a stopping engine does.
func (p *server) stop() {
	if p.socket != 0 {
		p.z.close(p.socket)
		p.socket = 0
	}
}

// publish sends a message with the next number.
func (p *server) publish(topic string, payload []byte) {
	p.t.Helper()
	frames := [][]byte{[]byte(topic), binary.BigEndian.AppendUint64(nil, p.next), payload}
	p.next++
	for i, f := range frames {
		flags := int32(zmqSNDMORE)
		if i == len(frames)-1 {
			flags = 0
		}
		data := append(f, 0) // so that an empty frame has an address too
		runtime.LockOSThread()
		n := p.z.send(p.socket, &data[0], uint64(len(f)), flags)
		for n < 0 && p.z.errno() == int32(unix.EINTR) { // by a signal of Go's scheduler
			n = p.z.send(p.socket, &data[0], uint64(len(f)), flags)
		}
		runtime.UnlockOSThread()
		if int(n) != len(f) {
			p.t.Fatalf("libzmq has sent %d of %d bytes", n, len(f))
		}
	}
}

// meet publishes numbered messages until one arrives: subscribing takes some time.
func (p *server) meet(s *Subscriber, from uint64, topic string, payload []byte) {
	p.t.Helper()
	p.next = from
	eventtest.Wait(p.t, "a subscription at libzmq", func() bool {
		p.publish(topic, payload)
		n, ok := s.last(topic)
		return ok && n >= from && n < p.next
	})
}

// lostOf returns how many messages of a kind were reported as dropped.
func lostOf(log *eventtest.Log, kind event.Kind) uint64 {
	list := log.OfKind(event.KindDrops)
	if len(list) == 0 {
		return 0
	}
	return list[len(list)-1].Data.(*event.Drops)[kind]
}

// last returns the number of the last message received on a topic.
func (s *Subscriber) last(topic string) (uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := s.numbers[topic]
	return n.last, ok
}

// await waits for the last message sent.
func (p *server) await(s *Subscriber, topic string) {
	p.t.Helper()
	eventtest.Wait(p.t, "the last message", func() bool {
		n, ok := s.last(topic)
		return ok && n == p.next-1
	})
}

// TestBlocksOfLibzmq receives KV events from the real libzmq, in both formats of vLLM and SGLang, over TCP and a Unix
// socket, and after a restart of the publisher.
func TestBlocksOfLibzmq(t *testing.T) {
	const topic = "kv@10.0.0.1@org/model"
	for _, at := range []string{"tcp://127.0.0.1:*", "ipc://" + filepath.Join(t.TempDir(), "kv")} {
		p := serve(t, at)
		s, log := start(t, p.at)
		p.meet(s, 1_000_000, topic, empty)
		for range 50 {
			p.publish(topic, sample(t, "vllm_kv_event_map"))
			p.publish(topic, sample(t, "vllm_kv_event_array"))
		}
		p.await(s, topic)
		sum := addTo(map[string]float64{}, s.Numbers())
		if sum["kv_blocks_stored"] != 150 || sum["kv_blocks_removed"] != 100 || sum["kv_cache_cleared"] != 100 || sum["kv_tokens_stored"] != 2400 || sum["zmq_garbage"] != 0 {
			t.Errorf("%s: %v", at, sum)
		}
		p.stop()
		eventtest.Wait(t, "the end", func() bool {
			list := log.OfKind(event.KindLog)
			return len(list) > 0 && strings.Contains(list[len(list)-1].Text, "zmq: "+p.at)
		})
		p.bind(p.at)
		p.meet(s, 0, topic, sample(t, "vllm_kv_event_array"))
		p.await(s, topic)
		if n := lostOf(log, event.KindKV); n != 0 {
			t.Errorf("%s: %d messages count as dropped after a restart", at, n)
		}
	}
}

// TestPassesOfLibzmq receives forward passes as SGLang publishes them: with an empty topic, over a Unix socket, with
// heartbeats.
func TestPassesOfLibzmq(t *testing.T) {
	p := serve(t, "ipc://"+filepath.Join(t.TempDir(), "fpm.0"))
	s, log := start(t, p.at)
	p.meet(s, 0, "", sample(t, "sglang_fpm"))
	before := len(log.OfKind(event.KindStep))
	for range 20 {
		p.publish("", sample(t, "sglang_fpm"))
	}
	p.await(s, "")
	steps := log.OfKind(event.KindStep)
	if n := len(steps) - before; n < 20 || !s.Passes() || lostOf(log, event.KindStep) != 0 {
		t.Errorf("%d passes of 20, %d dropped", n, lostOf(log, event.KindStep))
	}
	if e := steps[len(steps)-1]; e.N != 3 || e.Prompt != 256 || e.Dur != 25_100_000 {
		t.Errorf("%+v", e)
	}
}

// TestACutOffLibzmq counts what the real libzmq drops while disconnected, and answers its heartbeats.
func TestACutOffLibzmq(t *testing.T) {
	const topic = "kv"
	p := serve(t, "tcp://127.0.0.1:*", zmqHEARTBEAT, 20, zmqTIMEOUT, 600_000)
	w := lay(t, p.at)
	s, log := start(t, "tcp://"+w.Addr().String())
	p.meet(s, 0, topic, empty)
	eventtest.Wait(t, "an answer to libzmq's heartbeat", func() bool { return strings.Contains(w.sent(), "\x04PONG") })
	p.await(s, topic)
	if n := lostOf(log, event.KindKV); n != 0 {
		t.Errorf("%d count as dropped before any was", n)
	}
	w.set(true)
	from := p.next // everything from here on until the connection is back
	for range 7 {
		p.publish(topic, empty)
	}
	w.set(false)
	p.meet(s, from+7, topic, empty)
	p.await(s, topic)
	if n := lostOf(log, event.KindKV); n < 7 || n >= p.next-from {
		t.Errorf("%d of %d messages count as dropped, want at least 7", n, p.next-from)
	}
}

// TestASlowSubscriberOfLibzmq counts what the real libzmq drops when the buffers between both sides are full.
func TestASlowSubscriberOfLibzmq(t *testing.T) {
	const topic, large = "kv", 60
	p := serve(t, "tcp://127.0.0.1:*", zmqSNDHWM, 10)
	w := lay(t, p.at)
	s, log := start(t, "tcp://"+w.Addr().String())
	p.meet(s, 0, topic, empty)
	first, _ := s.last(topic)
	before, begun := lostOf(log, event.KindKV), p.next
	payload := append([]byte("\x92\x01\x91\x92\xacBlockRemoved\x91\xc6\x00\x30\x00\x00"), make([]byte, 3<<20)...) // one block of a long name
	w.mu.Lock()
	for range large {
		p.publish(topic, payload)
	}
	w.mu.Unlock()
	sum := map[string]float64{}
	eventtest.Wait(t, "a message after the large ones", func() bool {
		p.publish(topic, empty)
		n, _ := s.last(topic)
		addTo(sum, s.Numbers())
		return n >= begun+large
	})
	came, lost := uint64(sum["kv_blocks_removed"]), lostOf(log, event.KindKV)-before
	if came == 0 || lost == 0 || came+lost < large || came+lost > p.next-first || sum["zmq_garbage"] != 0 {
		t.Errorf("of %d large messages %d arrived; of %d messages %d count as dropped", large, came, p.next-first, lost)
	}
}
