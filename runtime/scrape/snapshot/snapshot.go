// Package snapshot reads where SGLang's schedulers stand, which these write into a file in shared memory, /dev/shm/sglang_loads_NAME.shm, at each
// prefill, when they have nothing to do, and every so many steps of decoding. SGLang's own /v1/loads reads the same file. Its form is that of version 2
// (python/sglang/srt/managers/load_snapshot.py): a head of 12 bytes, "SLNS", version and number of ranks in 2 bytes each, size of a slot in 4, all
// little-endian; then a slot for each rank of data parallelism: the length of what follows in 4 bytes, and a map in MessagePack.
package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/llmtop/llmtop/runtime/zmq/msgpack"
)

// The form of the file, and its bounds.
const (
	magic     = "SLNS"
	version   = 2
	headBytes = 12
	lenBytes  = 4
	maxRanks  = 1024
	minSlot   = 64
	maxSlot   = 1 << 20 // bytes; SGLang's have 16 KiB
	maxRank   = 64 << 10
	tries     = 4
)

// Load is where one rank stands. What was never written is 0, as SGLang leaves out what is.
type Load struct {
	At               float64 // Unix time in s
	Running, Waiting float64 // requests
	Used, Total      float64 // tokens in the KV cache, and how many it holds
	Usage            float64 // 0..1
	Generated        float64 // tokens/s
	CacheHits        float64 // 0..1
}

// fields are where the numbers of a Load stand in the map.
func (l *Load) fields() map[string]*float64 {
	return map[string]*float64{
		"timestamp": &l.At, "num_running_reqs": &l.Running, "num_waiting_reqs": &l.Waiting, "num_used_tokens": &l.Used, "max_total_num_tokens": &l.Total,
		"token_usage": &l.Usage, "gen_throughput": &l.Generated, "cache_hit_rate": &l.CacheHits,
	}
}

// Named reports whether a path is one of those that SGLang gives to such files.
func Named(file string) bool {
	name := path.Base(file)
	return strings.HasPrefix(name, "sglang_loads_") && strings.HasSuffix(name, ".shm")
}

// errTorn is the error of a slot that is being written again and again while it is read.
var errTorn = errors.New("is written to while it is read")

// Read reads where all ranks stand that have written yet. It takes no lock: whoever has one and is stopped would stop the server. A slot's length is 0
// while it is written, and a slot is taken once two looks at it agree. Errors: the file has another form, of the server's version or of none.
func Read(file io.ReaderAt) ([]Load, error) {
	var head [headBytes]byte
	if _, err := file.ReadAt(head[:], 0); err != nil {
		return nil, fmt.Errorf("read the head of the snapshots: %w", err)
	}
	ranks, size := int(binary.LittleEndian.Uint16(head[6:])), int64(binary.LittleEndian.Uint32(head[8:]))
	switch v := binary.LittleEndian.Uint16(head[4:]); {
	case string(head[:4]) != magic:
		return nil, errors.New("the file is none of snapshots")
	case v != version:
		return nil, fmt.Errorf("the snapshots have version %d, and llmtop knows %d", v, version)
	case ranks == 0 || ranks > maxRanks || size < minSlot || size > maxSlot:
		return nil, fmt.Errorf("the snapshots are of %d ranks with %d bytes each", ranks, size)
	}
	var out []Load
	for rank := range ranks {
		raw, err := slot(file, headBytes+int64(rank)*size, size)
		if err != nil {
			return nil, fmt.Errorf("read the snapshot of rank %d: %w", rank, err)
		}
		l, err := decode(raw, rank)
		if err != nil {
			return nil, fmt.Errorf("read the snapshot of rank %d: %w", rank, err)
		}
		if l.At > 0 { // before it has something to say it writes its rank alone
			out = append(out, l)
		}
	}
	return out, nil
}

// slot is what stands in a slot, nothing if nothing does.
func slot(file io.ReaderAt, at, size int64) (before []byte, err error) {
	for range tries {
		var head [lenBytes]byte
		if _, err := file.ReadAt(head[:], at); err != nil {
			return nil, err
		}
		n := int64(binary.LittleEndian.Uint32(head[:]))
		if n > min(size-lenBytes, maxRank) {
			return nil, fmt.Errorf("it has %d bytes in a slot of %d", n, size)
		}
		now := make([]byte, lenBytes+n)
		if _, err := file.ReadAt(now, at); err != nil {
			return nil, err
		}
		if n > 0 && bytes.Equal(now[:lenBytes], head[:]) && bytes.Equal(now, before) {
			return now[lenBytes:], nil
		}
		before = now
	}
	if len(before) == lenBytes {
		return nil, nil
	}
	return nil, errTorn
}

// decode reads the map of a rank.
func decode(raw []byte, rank int) (l Load, err error) {
	if len(raw) == 0 {
		return l, nil
	}
	v, err := msgpack.Decode(raw)
	if err != nil {
		return l, err
	}
	m, ok := v.(msgpack.Map)
	if !ok {
		return l, errors.New("it is no map")
	}
	if own, told := msgpack.Number(m["dp_rank"]); told && own != float64(rank) {
		return l, fmt.Errorf("it says that it is of rank %v", own)
	}
	for name, into := range l.fields() {
		v, told := m[name]
		if !told {
			continue
		}
		n, ok := msgpack.Number(v)
		if !ok || n < 0 || n > 1e18 {
			return l, fmt.Errorf("its %s makes no sense", name)
		}
		*into = n
	}
	return l, nil
}
