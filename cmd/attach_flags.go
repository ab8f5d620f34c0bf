package cmd

import (
	"cmp"
	"slices"
	"time"

	"github.com/llmtop/llmtop/runtime/api"
)

func (o *attachOptions) check() error {
	if o.every < leastInterval {
		return usagef("--interval %v: must be at least %v", o.every, leastInterval)
	}
	switch {
	case o.length < 0:
		return usagef("--for %v: must be more than 0", o.length)
	case o.length > 0 && !o.headless:
		return usagef("--for goes with --headless: llmtop attach --headless --for %v ADDRESS", o.length)
	}
	return cmp.Or(o.probing.check(), o.traces.check(), o.files.checkHeadless(o.headless), o.recording.check(), o.exports.check(), o.view.check())
}

// leastInterval is how often servers may be asked.
const leastInterval = 100 * time.Millisecond

// explained is the error of an address, or what was meant by it.
func (o *attachOptions) explained(at string, err error) error {
	if _, no := time.ParseDuration(at); no == nil && o.probing.every > 0 {
		return usagef("attach %s is no address; to send a probe this often: --probe=%s", at, at)
	}
	return err
}

// misplaced refuses flags that would do nothing with the addresses that are given.
func (o *attachOptions) misplaced() error {
	servers := slices.ContainsFunc(o.addresses, api.IsAddress)
	switch {
	case o.probing.every > 0 && !servers:
		return usagef("--probe is for servers: llmtop attach --probe http://HOST:PORT")
	case o.drain && !servers:
		return usagef("--drain is for servers of TensorRT-LLM: llmtop attach --drain http://HOST:PORT")
	case o.key.file != "" && !servers && !slices.ContainsFunc(o.addresses, isFleet):
		return usagef("--api-key-file is for servers: llmtop attach --api-key-file FILE http://HOST:PORT")
	}
	return nil
}
