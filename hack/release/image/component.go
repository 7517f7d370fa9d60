// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// component is a program that has an image.
type component struct {
	name, description string
	// budget bounds the size of the program, in MB: what a node has to fetch grows only when it is decided.
	budget int64
}

var components = []component{
	{"cluster-provider", "Makes clusters for a hub, and gives access to them", 75},
	{"hub-agent", "Runs for one managed cluster", 52},
	{"hub-apiserver", "Serves the API of a hub", 110},
	{"hub-controller-manager", "Runs the controllers of a hub", 60},
	{"hub-operator", "Installs hubs and agents", 45},
	{"hub-ui", "Serves the page of a hub behind an OIDC proxy", 40},
}

const megabyte = 1_000_000

// program is the program of a component for one architecture that images support.
type program struct {
	component
	file, arch string
	size       int64
	info       *buildinfo.BuildInfo
}

// machines are the architectures that images can be for, as ELF has them.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// programIn is the program of a component in a folder, if it can run where nothing else is, and is as small as it has to be.
func programIn(dir, arch string, c component) (*program, error) {
	file := filepath.Join(dir, c.name)
	binary, err := elf.Open(file)
	if err != nil {
		return nil, fmt.Errorf("the program of %s for linux/%s: %w", c.name, arch, err)
	}
	defer binary.Close()
	if want, ok := machines[arch]; !ok || binary.Machine != want {
		return nil, fmt.Errorf("%s is for %v: it has to be for linux/%s, one of amd64 and arm64", file, binary.Machine, arch)
	}
	interpreted := slices.ContainsFunc(binary.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
	libraries, err := binary.ImportedLibraries()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if interpreted || len(libraries) > 0 {
		return nil, fmt.Errorf("%s needs a linker and the libraries %q, and an image has none: build it with CGO_ENABLED=0", file, libraries)
	}
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if !slices.ContainsFunc(info.Settings, func(s buildSetting) bool { return s.Key == "-trimpath" && s.Value == "true" }) {
		return nil, fmt.Errorf("%s is not the same wherever it is built: build it with -trimpath", file)
	}
	stat, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if stat.Size() > c.budget*megabyte {
		return nil, fmt.Errorf("%s has %d bytes, which are more than the %d MB of its budget: find out what it has got, or raise the budget in hack/release/image/component.go",
			file, stat.Size(), c.budget)
	}
	return &program{component: c, file: file, arch: arch, size: stat.Size(), info: info}, nil
}
