package probe

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
)

// The kinds of records, as in bpf/probe.c.
const (
	kindPassBegin = 1 + iota
	kindPassEnd
	kindBatch
	kindPicked
	kindTokenized
	kindSampled
	kindRemoved
	kindReceived
	kindSent
	kindDrafted
	kindSynced
	kindCalled
	numKinds
)

// Sizes of the arrays in records, as in bpf/probe.c.
const (
	chunkTokens = 64
	chunkRows   = 16
	maxUsed     = 16
	headBytes   = 16
	maxBatch    = 1 << 16 // tokens of a batch or a text
)

// The flags of a batch record.
const (
	hasPos = 1 << iota
	hasSeq
	hasOutput
	noTokens
	physical
)

// record is what a probe read at one moment. Times are ns of CLOCK_MONOTONIC.
type record struct {
	kind uint32
	tid  uint32
	at   int64
	data any // pass, batch, picked, tokenized, sampled, removed, transfer, drafted, synced or called
}

// pass is the begin or the end of llama_decode or llama_encode.
type pass struct {
	ctx    uint64
	tokens int
	result int32 // of a begin: 1 if it computes a draft
	began  int64
	lost   uint64 // records of picks, from its begin to its end
}

// batch is a part of a batch of tokens: n tokens from first, of total.
type batch struct {
	ctx             uint64
	total, first, n int
	flags           uint32
	token, pos, seq [chunkTokens]int32
	output          [chunkTokens]int8
}

// picked is the router's picks of n rows from first, of total rows, in one layer.
type picked struct {
	layer           int
	used            int // picks of a row
	total, first, n int
	pick            [chunkRows][maxUsed]int32
}

// tokenized is a part of a text's tokens: n tokens from first, of total.
type tokenized struct {
	began           int64
	total, first, n int
	token           [chunkTokens]int32
}

// sampled is a token that was sampled from an output of the last batch.
type sampled struct {
	began int64
	ctx   uint64
	index int32 // of the token in the batch whose output it is; negative: from the end
	token int32
}

// removed are positions that were removed from the KV cache.
type removed struct {
	seq, from, to int32
}

// transfer is a system call that received or sent bytes. 0 received bytes: the other side has closed the connection; negative
// ones are an error.
type transfer struct {
	fd, bytes int32
	headers   bool // what was sent ends with an empty line, as headers do
}

// drafted is a call that worked on drafts for all sequences.
type drafted struct {
	began   int64
	follows bool // the draft model got a batch of the other; otherwise tokens were drafted
}

// synced is the end of llama_synchronize.
type synced struct {
	ctx uint64
}

// called is what a thread has called of CUDA since it is counted, at the begin or the end of a pass. Times are in ns.
type called struct {
	ctx              uint64
	launches, graphs uint64
	to, from         uint64 // bytes to the device and to the host
	unknown          uint64 // copies whose direction is unknown
	toTime, fromTime uint64 // in copies that do not wait for what the device computes
	waited, gaps     uint64
	first, last      int64 // begin of the first copy to the device, and end of the last one to the host, since the pass began
	begins           bool  // at the begin of a pass
}

var errRecord = errors.New("unexpected record")

// reader takes numbers from the bytes of a record.
type reader struct {
	b    []byte
	over bool // more was taken than there is
}

func (r *reader) take(n int) []byte {
	if len(r.b) < n {
		r.over = true
		return make([]byte, n)
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) u32() uint32 { return binary.NativeEndian.Uint32(r.take(4)) }
func (r *reader) u64() uint64 { return binary.NativeEndian.Uint64(r.take(8)) }
func (r *reader) i32() int32  { return int32(r.u32()) }
func (r *reader) i64() int64  { return int64(r.u64()) }

// part reads which part of a list a record has: its total length, and n entries from first. n is at most limit.
func (r *reader) part(limit int) (total, first, n int, ok bool) {
	t, f, c := r.u32(), r.u32(), r.u32()
	ok = t <= maxBatch && f <= t && c <= t-f && int(c) <= limit
	return int(t), int(f), int(c), ok
}

// room returns the entries that a record has room for if n are in it.
func room(n, limit int) int {
	if n == 1 {
		return 1
	}
	return limit
}

// list reads the n first entries of a list, and skips the room for others.
func (r *reader) list(to *[chunkTokens]int32, n, room int) {
	raw := r.take(4 * room)
	for i := range n {
		to[i] = int32(binary.NativeEndian.Uint32(raw[4*i:]))
	}
}

// parse reads a record of the ring buffer.
func parse(raw []byte) (record, error) {
	r := reader{b: raw}
	out := record{kind: r.u32(), tid: r.u32(), at: r.i64()}
	ok := true
	switch out.kind {
	case kindPassBegin, kindPassEnd:
		p := &pass{ctx: r.u64(), tokens: int(r.i32()), result: r.i32(), began: r.i64(), lost: r.u64()}
		out.data = p
	case kindBatch:
		b := &batch{ctx: r.u64()}
		b.total, b.first, b.n, ok = r.part(chunkTokens)
		b.flags = r.u32()
		if ok {
			parseBatch(&r, b)
		}
		out.data = b
	case kindPicked:
		out.data, ok = parsePicked(&r)
	case kindTokenized:
		t := &tokenized{began: r.i64()}
		t.total, t.first, t.n, ok = r.part(chunkTokens)
		r.u32()
		if ok {
			r.list(&t.token, t.n, chunkTokens)
		}
		out.data = t
	case kindSampled:
		out.data = &sampled{began: r.i64(), ctx: r.u64(), index: r.i32(), token: r.i32()}
	case kindRemoved:
		r.u64()
		out.data = &removed{seq: r.i32(), from: r.i32(), to: r.i32()}
	case kindReceived, kindSent:
		out.data = &transfer{fd: r.i32(), bytes: r.i32(), headers: r.u64() != 0}
	case kindDrafted:
		out.data = &drafted{began: r.i64(), follows: r.u64() != 0}
	case kindSynced:
		out.data = &synced{ctx: r.u64()}
	case kindCalled:
		out.data = &called{
			r.u64(), r.u64(), r.u64(), r.u64(), r.u64(), r.u64(), r.u64(), r.u64(), r.u64(), r.u64(), r.i64(), r.i64(), r.u64() != 0,
		}
	default:
		ok = false
	}
	if !ok || r.over {
		return record{}, errRecord
	}
	return out, nil
}

func parseBatch(r *reader, b *batch) {
	size := room(b.n, chunkTokens)
	r.list(&b.token, b.n, size)
	r.list(&b.pos, b.n, size)
	r.list(&b.seq, b.n, size)
	for i, v := range r.take(size)[:b.n] {
		b.output[i] = int8(v)
	}
}

// pickTensor is the prefix of the names of the tensors that hold picks; the layer follows.
const pickTensor = "ffn_moe_topk-"

func parsePicked(r *reader) (*picked, bool) {
	name, _, _ := bytes.Cut(r.take(64), []byte{0})
	layer, err := strconv.Atoi(strings.TrimPrefix(string(name), pickTensor))
	p := &picked{layer: layer, used: int(r.u32())}
	var ok bool
	p.total, p.first, p.n, ok = r.part(chunkRows)
	if !ok {
		return nil, false
	}
	raw := r.take(4 * maxUsed * room(p.n, chunkRows))
	for i := range p.n {
		for j := range p.pick[i] {
			p.pick[i][j] = int32(binary.NativeEndian.Uint32(raw[4*(i*maxUsed+j):]))
		}
	}
	return p, err == nil && layer >= 0 && layer < maxLayers && p.used > 0 && p.used <= maxUsed
}

// maxLayers bounds the layers whose picks are kept.
const maxLayers = 1024
