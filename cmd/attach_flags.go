package cmd

import (
	"cmp"
	"slices"
	"time"

	"github.com/llmtop/llmtop/runtime/engine/remote"
)

func (o *attachOptions) check() error {
	if o.every < minInterval {
		return usagef("--interval %v: must be at least %v", o.every, minInterval)
	}
	switch {
	case o.length < 0:
		return usagef("--for %v: must be more than 0", o.length)
	case o.length > 0 && !o.headless:
		return usagef("--for needs --headless: llmtop attach --headless --for %v ADDRESS", o.length)
	}
	return cmp.Or(o.probing.check(), o.traces.check(), o.files.checkHeadless(o.headless), o.recording.check(), o.exports.check(), o.view.check())
}

// minInterval is the shortest polling interval.
const minInterval = 100 * time.Millisecond

// addressError returns the error of an unusable address; for a duration it points to --probe=DURATION.
func (o *attachOptions) addressError(at string, err error) error {
	if _, no := time.ParseDuration(at); no == nil && o.probing.every > 0 {
		return usagef("attach %s: not an address; for a probe interval write --probe=%s", at, at)
	}
	return err
}

// checkAddressFlags refuses flags that have no effect on the given addresses.
func (o *attachOptions) checkAddressFlags() error {
	servers := slices.ContainsFunc(o.addresses, remote.IsAddress)
	switch {
	case o.probing.every > 0 && !servers:
		return usagef("--probe needs the address of a server: llmtop attach --probe http://HOST:PORT")
	case o.drain && !servers:
		return usagef("--drain needs the address of a TensorRT-LLM server: llmtop attach --drain http://HOST:PORT")
	case o.key.file != "" && !servers && !slices.ContainsFunc(o.addresses, isFleet):
		return usagef("--api-key-file needs the address of a server: llmtop attach --api-key-file FILE http://HOST:PORT")
	}
	return nil
}
