package peer

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/runtime/engine/native"
)

// OllamaModel is the name of the built-in model in Ollama.
const OllamaModel = "llmtop-demo:latest"

// Ollama starts Ollama with an empty library and adds the built-in model as OllamaModel. The first generating request
// loads it into a llama-server that is a child of Ollama. env adds settings such as OLLAMA_NUM_PARALLEL=2.
func Ollama(tb testing.TB, env ...string) *Process {
	tb.Helper()
	path, home := Path(tb, OllamaEnv), tb.TempDir()
	p := Start(tb, "ollama", "/api/version", func(port int) *exec.Cmd {
		cmd := exec.Command(path, "serve")
		cmd.Env = append(os.Environ(), append([]string{
			fmt.Sprintf("OLLAMA_HOST=127.0.0.1:%d", port), "HOME=" + home, "OLLAMA_MODELS=" + filepath.Join(home, "models"), "OLLAMA_NO_CLOUD=1",
		}, env...)...)
		return cmd
	})
	if err := give(p.URL, OllamaModel, native.DemoModel()); err != nil {
		tb.Fatalf("give ollama the model: %v\n%s", err, p.Log())
	}
	return p
}

// OllamaAlso adds a second model, the built-in one with another name in its file, which Ollama therefore runs in another
// llama-server.
func OllamaAlso(tb testing.TB, p *Process, name string) {
	tb.Helper()
	const title = "llmtop demo MoE"
	if err := give(p.URL, name, bytes.Replace(native.DemoModel(), []byte(title), []byte(strings.ToUpper(title)), 1)); err != nil {
		tb.Fatalf("give ollama a second model: %v\n%s", err, p.Log())
	}
}

// give creates a model with a name from the bytes of a GGUF file in an Ollama.
func give(url, name string, model []byte) error {
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(model))
	if err := post(url+"/api/blobs/"+digest, "application/octet-stream", model); err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"model": name, "files": map[string]string{native.DemoName: digest}, "stream": false})
	if err != nil {
		return err
	}
	return post(url+"/api/create", "application/json", body)
}

func post(url, kind string, body []byte) error {
	resp, err := http.Post(url, kind, bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s: %s", resp.Status, text)
	}
	return nil
}
