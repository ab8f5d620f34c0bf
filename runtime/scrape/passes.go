package scrape

import (
	"context"
	"os"
	"strings"

	"github.com/llmtop/llmtop/runtime/api"
	"github.com/llmtop/llmtop/runtime/zmq"
)

// maxPath bounds the path of a socket that a server tells, in bytes: what systems take is less.
const maxPath = 256

// passes follows the forward passes that SGLang publishes on this machine, where it says where, and the user has not named a socket. Of several ranks
// it is the first one.
func (s *Source) passes(ctx context.Context) {
	if s.opt.Published != nil || !api.IsLocal(s.client.Address()) {
		return
	}
	var info struct {
		Name string `json:"forward_pass_metrics_ipc_name"`
	}
	if s.client.JSON(ctx, "/server_info", &info) != nil {
		return
	}
	path := strings.TrimPrefix(info.Name, "ipc://")
	if path == "" || len(path) > maxPath {
		return
	}
	if at, err := os.Stat(path); err != nil || at.Mode()&os.ModeSocket == 0 {
		path += ".0"
	}
	from, err := zmq.New("ipc://"+path, s.opt.Clock, new(zmq.Losses))
	if err != nil {
		return
	}
	s.opt.Published = from
	s.say("the server publishes its forward passes: following %s", from.Address())
	s.beside.Go(func() { _ = from.Run(ctx, s.sink) }) // it ends with ctx alone
}
