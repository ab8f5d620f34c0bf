package library

import (
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// image holds data from the header of a shared library.
type image struct {
	os, arch string   // Go names; an architecture without a Go name is described as in the file
	needs    []string // file names of the libraries that it is linked with
}

// inspect reads the header of a shared library.
func inspect(path string) (image, error) {
	f, err := os.Open(path)
	if err != nil {
		return image{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return image{}, err
	}
	if !info.Mode().IsRegular() {
		return image{}, errors.New("not a file")
	}
	return readImage(f)
}

// readImage reads the header of a shared library of any system. The readers of the standard library may panic on
// damaged files.
func readImage(r io.ReaderAt) (b image, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("damaged file: %v", p)
		}
	}()
	var magic [4]byte
	if _, err := r.ReadAt(magic[:], 0); err != nil {
		return image{}, errors.New("not a shared library: too short")
	}
	switch {
	case string(magic[:]) == elf.ELFMAG:
		return readELF(r)
	case string(magic[:2]) == "MZ":
		return readPE(r)
	case slices.Contains([]string{"\xcf\xfa\xed\xfe", "\xce\xfa\xed\xfe", "\xca\xfe\xba\xbe"}, string(magic[:])):
		return readMachO(r)
	}
	return image{}, errors.New("not a shared library")
}

func readELF(r io.ReaderAt) (image, error) {
	f, err := elf.NewFile(r)
	if err != nil {
		return image{}, fmt.Errorf("damaged file: %w", err)
	}
	if f.Type != elf.ET_DYN {
		return image{}, errors.New("not a shared library")
	}
	needs, err := f.ImportedLibraries()
	if err != nil {
		return image{}, fmt.Errorf("damaged file: %w", err)
	}
	arch := strings.ToLower(strings.TrimPrefix(f.Machine.String(), "EM_"))
	switch f.Machine {
	case elf.EM_X86_64:
		arch = "amd64"
	case elf.EM_AARCH64:
		arch = "arm64"
	}
	return image{"linux", arch, needs}, nil
}

func readPE(r io.ReaderAt) (image, error) {
	f, err := pe.NewFile(r)
	if err != nil {
		return image{}, fmt.Errorf("damaged file: %w", err)
	}
	if f.Characteristics&pe.IMAGE_FILE_DLL == 0 {
		return image{}, errors.New("not a shared library")
	}
	symbols, err := f.ImportedSymbols()
	if err != nil {
		return image{}, fmt.Errorf("damaged file: %w", err)
	}
	var needs []string
	for _, s := range symbols {
		if _, lib, ok := strings.Cut(s, ":"); ok && !slices.Contains(needs, lib) {
			needs = append(needs, lib)
		}
	}
	arch := fmt.Sprintf("machine %#x", f.Machine)
	switch f.Machine {
	case pe.IMAGE_FILE_MACHINE_AMD64:
		arch = "amd64"
	case pe.IMAGE_FILE_MACHINE_ARM64:
		arch = "arm64"
	case pe.IMAGE_FILE_MACHINE_I386:
		arch = "386"
	}
	return image{"windows", arch, needs}, nil
}

// readMachO reads a macOS library. For a universal file, it is the part for llmtop's architecture, if present.
func readMachO(r io.ReaderAt) (image, error) {
	fat, err := macho.NewFatFile(r)
	if err == nil {
		for _, a := range fat.Arches {
			if archOf(a.Cpu) == ownArch {
				return ofMachO(a.File)
			}
		}
		return ofMachO(fat.Arches[0].File)
	}
	f, err := macho.NewFile(r)
	if err != nil {
		return image{}, fmt.Errorf("damaged file: %w", err)
	}
	return ofMachO(f)
}

func ofMachO(f *macho.File) (image, error) {
	if f.Type != macho.TypeDylib && f.Type != macho.TypeBundle {
		return image{}, errors.New("not a shared library")
	}
	needs, err := f.ImportedLibraries()
	if err != nil {
		return image{}, fmt.Errorf("damaged file: %w", err)
	}
	for i, n := range needs {
		needs[i] = n[strings.LastIndexByte(n, '/')+1:]
	}
	return image{"darwin", archOf(f.Cpu), needs}, nil
}

func archOf(cpu macho.Cpu) string {
	switch cpu {
	case macho.CpuAmd64:
		return "amd64"
	case macho.CpuArm64:
		return "arm64"
	}
	return strings.ToLower(strings.TrimPrefix(cpu.String(), "Cpu"))
}
