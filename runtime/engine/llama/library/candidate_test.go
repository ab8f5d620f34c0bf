package library

import (
	"bytes"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/runtime/engine/llama/library/fixture"
)

// folder creates a temporary folder with files.
func folder(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	fill(t, dir, files)
	return dir
}

func fill(t testing.TB, dir string, files map[string][]byte) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// with returns the files of a llama.cpp for linux/amd64 with changes; nil removes a file.
func with(changes map[string][]byte) map[string][]byte {
	files := fixture.Libraries(elf.EM_X86_64)
	for name, data := range changes {
		if files[name] = data; data == nil {
			delete(files, name)
		}
	}
	return files
}

func TestLook(t *testing.T) {
	dir := folder(t, with(map[string][]byte{"libggml-cuda.so": {}, "libggml-vulkan.so": {}}))
	got, err := look(dir, Named, "linux", "amd64")
	if err != nil {
		t.Fatal(err)
	}
	want := Candidate{
		Origin: Named, Dir: dir, Release: "0.5.0", Device: "cuda+vulkan", Llama: filepath.Join(dir, "libllama.v0.5.0.so"),
		GGML: filepath.Join(dir, "libggml.v0.5.0.so"), Base: filepath.Join(dir, "libggml-base.so"),
	}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestLookReportsUnusable(t *testing.T) {
	for name, c := range map[string]struct {
		changes map[string][]byte
		want    string
	}{
		"no libggml":         {map[string][]byte{"libggml.v0.5.0.so": nil}, "libggml is missing next to libllama"},
		"no libggml-base":    {map[string][]byte{"libggml-base.so": nil}, "libggml-base is missing next to libllama"},
		"other architecture": {fixture.Libraries(elf.EM_AARCH64), "built for linux/arm64, llmtop needs linux/amd64"},
		"odd architecture":   {fixture.Libraries(elf.EM_RISCV), "built for linux/riscv, llmtop needs linux/amd64"},
		"one of another":     {map[string][]byte{"libggml-base.so": fixture.SharedObject(elf.EM_AARCH64)}, "built for linux/arm64"},
		"text":               {map[string][]byte{"libllama.v0.5.0.so": []byte("GROUP ( libllama.so.1 )")}, "libllama.v0.5.0.so cannot be read: not a shared library"},
		"empty":              {map[string][]byte{"libggml-base.so": {}}, "libggml-base.so cannot be read: not a shared library: too short"},
		"torn":               {map[string][]byte{"libllama.v0.5.0.so": fixture.SharedObject(elf.EM_X86_64, "libggml.so")[:200]}, "damaged file"},
		"needs another": {
			map[string][]byte{"libllama.v0.5.0.so": fixture.SharedObject(elf.EM_X86_64, "libggml.so.7", "libm.so.6")},
			"libllama.v0.5.0.so needs libggml.so.7, which is missing in the folder",
		},
	} {
		got, err := look(folder(t, with(c.changes)), System, "linux", "amd64")
		if err != nil || got.Usable() || !strings.Contains(got.Why, c.want) {
			t.Errorf("%s: got %q, %v, want %q", name, got.Why, err, c.want)
		}
	}
	if got, err := Look(t.TempDir(), System); err == nil {
		t.Errorf("an empty folder contains %+v", got)
	}
	if got, err := Look(filepath.Join(t.TempDir(), "none"), System); err == nil {
		t.Errorf("a missing folder contains %+v", got)
	}
}

func TestLibraryName(t *testing.T) {
	for file, want := range map[string]string{
		"libllama.so": "llama|", "libllama.so.0.5.0": "llama|0.5.0", "libllama.v0.5.0.so": "llama|0.5.0",
		"libllama.metal.v0.4.0.dylib": "llama|0.4.0", "llama.v0.4.0.dll": "llama|0.4.0", "llama.dll": "llama|",
		"libllama.0.0.6123.dylib": "llama|0.0.6123", "libggml-base.so": "ggml-base|", "libllama-common.so": "llama-common|",
		"libllama.a": "", "llama.txt": "", "libllama.so.bak": "", "llama": "",
	} {
		got := ""
		if parts := libraryName.FindStringSubmatch(file); parts != nil {
			got = parts[1] + "|" + parts[3] + parts[4]
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", file, got, want)
		}
	}
}

// headers returns the first bytes of libraries of the three systems.
func headers() map[string][]byte {
	pack := func(parts ...any) []byte {
		var b bytes.Buffer
		for _, p := range parts {
			_ = binary.Write(&b, binary.LittleEndian, p) // writing to a buffer cannot fail
		}
		return b.Bytes()
	}
	dos := make([]byte, 96)
	copy(dos, "MZ")
	dos[0x3c] = 96
	return map[string][]byte{
		"linux/arm64": fixture.SharedObject(elf.EM_AARCH64, "libggml.so"),
		"darwin/arm64": pack(macho.FileHeader{
			Magic: macho.Magic64, Cpu: macho.CpuArm64, Type: macho.TypeDylib,
		}, uint32(0)),
		"windows/amd64": pack(dos, []byte("PE\x00\x00"), pe.FileHeader{
			Machine: pe.IMAGE_FILE_MACHINE_AMD64, Characteristics: pe.IMAGE_FILE_DLL, SizeOfOptionalHeader: 240,
		}, pe.OptionalHeader64{Magic: 0x20b, NumberOfRvaAndSizes: 16}),
	}
}

func TestReadImage(t *testing.T) {
	for want, data := range headers() {
		b, err := readImage(bytes.NewReader(data))
		if got := b.os + "/" + b.arch; err != nil || got != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
}

func FuzzReadImage(f *testing.F) {
	for data := range maps.Values(headers()) {
		f.Add(data)
	}
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = readImage(bytes.NewReader(data)) })
}
