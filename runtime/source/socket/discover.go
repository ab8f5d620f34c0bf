package socket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/llmtop/llmtop/profiler/event"
)

// Found is an engine in the well-known folder.
type Found struct {
	Address string
	Engine  event.EngineInfo // Name is "" if it does not answer, or only with a token
}

// maxFound limits the number of sockets that are tried.
const maxFound = 64

// Discover returns this user's running engines in the order of their addresses, none if the folder does not exist.
// Error: ErrUntrusted.
func Discover() ([]Found, error) {
	candidates, err := sockets()
	if err != nil {
		return nil, err
	}
	all := make([]*Found, len(candidates))
	var wait sync.WaitGroup
	for i, a := range candidates {
		wait.Go(func() { all[i] = visit(a) })
	}
	wait.Wait()
	return nonNil(all), nil
}

// sockets returns the sockets in the well-known folder, with or without a listener.
func sockets() (out []address, err error) {
	if err := trustedFolder(Folder()); err != nil {
		return nil, fmt.Errorf("find engines: %w", err)
	}
	entries, err := os.ReadDir(Folder())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find engines: %w", err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) && len(out) < maxFound {
			out = append(out, address{"unix", filepath.Join(Folder(), e.Name())})
		}
	}
	return out, nil
}

// nonNil returns the elements that are not nil.
func nonNil[T any](all []*T) (out []T) {
	for _, p := range all {
		if p != nil {
			out = append(out, *p)
		}
	}
	return out
}

// visit returns the engine that listens at an address, or nil.
func visit(a address) *Found {
	ctx, cancel := context.WithTimeout(context.Background(), shortTimeout)
	defer cancel()
	conn, err := dial(ctx, a)
	if err != nil {
		return nil
	}
	defer conn.Close()
	f := &Found{Address: a.String()}
	if engine, err := introduction(conn); err == nil {
		f.Engine = engine
	}
	return f
}
