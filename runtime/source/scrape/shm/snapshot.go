// Package shm reads the load of SGLang's schedulers from a file in shared memory, /dev/shm/sglang_loads_NAME.shm. The
// schedulers write it at each prefill, when idle, and every few decode steps. SGLang's own /v1/loads reads the same
// file. Format, version 2 (python/sglang/srt/managers/load_snapshot.py), little-endian: a header of 12 bytes ("SLNS", 2
// bytes version, 2 bytes number of ranks, 4 bytes slot size), then one slot per data-parallel rank: 4 bytes length and
// a MessagePack map.
package shm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/llmtop/llmtop/runtime/source/zmq/msgpack"
)

// Format and limits of the file.
const (
	magic     = "SLNS"
	version   = 2
	headBytes = 12
	lenBytes  = 4
	maxRanks  = 1024
	minSlot   = 64
	maxSlot   = 1 << 20 // bytes; SGLang uses 16 KiB
	maxRank   = 64 << 10
	maxTries  = 4
)

// RankLoad holds the load of one rank. Fields that are not in the file are 0: SGLang omits zeros.
type RankLoad struct {
	At               float64 // Unix time in s
	Running, Waiting float64 // requests
	Used, Total      float64 // tokens in the KV cache, and its capacity
	Usage            float64 // 0..1
	Generated        float64 // tokens/s
	CacheHits        float64 // 0..1
}

// fields maps the keys of the file to the fields.
func (l *RankLoad) fields() map[string]*float64 {
	return map[string]*float64{
		"timestamp": &l.At, "num_running_reqs": &l.Running, "num_waiting_reqs": &l.Waiting, "num_used_tokens": &l.Used, "max_total_num_tokens": &l.Total,
		"token_usage": &l.Usage, "gen_throughput": &l.Generated, "cache_hit_rate": &l.CacheHits,
	}
}

// IsSnapshot reports whether a path has the name of a snapshot file.
func IsSnapshot(file string) bool {
	name := path.Base(file)
	return strings.HasPrefix(name, "sglang_loads_") && strings.HasSuffix(name, ".shm")
}

// errTorn means that a slot changed during every attempt to read it.
var errTorn = errors.New("the slot keeps changing")

// Read returns the loads of all ranks that have written one. It takes no lock, because a stopped reader that holds one
// would block the server. A slot has length 0 while it is being written; it is accepted when two reads agree. Errors:
// the file has another format or version.
func Read(file io.ReaderAt) ([]RankLoad, error) {
	var head [headBytes]byte
	if _, err := file.ReadAt(head[:], 0); err != nil {
		return nil, fmt.Errorf("read snapshot header: %w", err)
	}
	ranks, size := int(binary.LittleEndian.Uint16(head[6:])), int64(binary.LittleEndian.Uint32(head[8:]))
	switch v := binary.LittleEndian.Uint16(head[4:]); {
	case string(head[:4]) != magic:
		return nil, errors.New("not a file of load snapshots")
	case v != version:
		return nil, fmt.Errorf("snapshot version %d is not supported (want %d)", v, version)
	case ranks == 0 || ranks > maxRanks || size < minSlot || size > maxSlot:
		return nil, fmt.Errorf("implausible header: %d ranks of %d bytes", ranks, size)
	}
	var out []RankLoad
	for rank := range ranks {
		raw, err := readSlot(file, headBytes+int64(rank)*size, size)
		if err != nil {
			return nil, fmt.Errorf("read snapshot of rank %d: %w", rank, err)
		}
		l, err := decode(raw, rank)
		if err != nil {
			return nil, fmt.Errorf("read snapshot of rank %d: %w", rank, err)
		}
		if l.At > 0 { // before its first load, a rank writes only its number
			out = append(out, l)
		}
	}
	return out, nil
}

// readSlot returns the content of a slot; nil if it is empty.
func readSlot(file io.ReaderAt, at, size int64) (before []byte, err error) {
	for range maxTries {
		var head [lenBytes]byte
		if _, err := file.ReadAt(head[:], at); err != nil {
			return nil, err
		}
		n := int64(binary.LittleEndian.Uint32(head[:]))
		if n > min(size-lenBytes, maxRank) {
			return nil, fmt.Errorf("%d bytes do not fit into a slot of %d", n, size)
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

// decode decodes the map of a rank.
func decode(raw []byte, rank int) (l RankLoad, err error) {
	if len(raw) == 0 {
		return l, nil
	}
	v, err := msgpack.Decode(raw)
	if err != nil {
		return l, err
	}
	m, ok := v.(msgpack.Map)
	if !ok {
		return l, errors.New("not a map")
	}
	if written, ok := msgpack.Number(m["dp_rank"]); ok && written != float64(rank) {
		return l, fmt.Errorf("it belongs to rank %v", written)
	}
	for name, into := range l.fields() {
		v, found := m[name]
		if !found {
			continue
		}
		n, ok := msgpack.Number(v)
		if !ok || n < 0 || n > 1e18 {
			return l, fmt.Errorf("invalid %s", name)
		}
		*into = n
	}
	return l, nil
}
