package discover

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/runtime/source/scrape/engine"
)

// NeverSleeps reports whether the llama-server at a port of this machine was started without an option that lets its
// model fall asleep; false if that is unknown. Reading the slots of one that may sleep would keep its model awake.
func NeverSleeps(port uint16) bool {
	seen := look("")
	return slices.ContainsFunc(seen.processes, func(p process) bool {
		return slices.ContainsFunc(p.ports, func(at netip.AddrPort) bool { return at.Port() == port }) && p.neverSleeps("")
	})
}

// neverSleeps reports whether a llama-server has neither an argument nor a variable that sets when its models sleep, or
// names a file that may. Its environment is readable on Linux, with the rights of its user.
func (p *process) neverSleeps(root string) bool {
	if p.program.Kind != engine.Llama || slices.ContainsFunc(p.args, func(arg string) bool {
		return strings.HasPrefix(arg, "--sleep-idle-seconds") || strings.HasPrefix(arg, "--models-")
	}) {
		return false
	}
	variables, err := os.ReadFile(filepath.Join("/", root, "proc", strconv.Itoa(p.pid), "environ"))
	return err == nil && !bytes.Contains(variables, []byte("LLAMA_ARG_SLEEP_IDLE_SECONDS")) && !bytes.Contains(variables, []byte("LLAMA_ARG_MODELS_"))
}
