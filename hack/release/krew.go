// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"

	"sigs.k8s.io/yaml"
)

const krewVersion = "krew.googlecontainertools.github.com/v1alpha2"

// plugin is how krew knows a plugin of kubectl. Its name is what follows kubectl.
type plugin struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       spec     `json:"spec"`
}

type metadata struct {
	Name string `json:"name"`
}

type spec struct {
	Version          string     `json:"version"`
	Homepage         string     `json:"homepage"`
	ShortDescription string     `json:"shortDescription"`
	Description      string     `json:"description"`
	Platforms        []platform `json:"platforms"`
}

type platform struct {
	Selector selector `json:"selector"`
	URI      string   `json:"uri"`
	SHA256   string   `json:"sha256"`
	Bin      string   `json:"bin"`
}

type selector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

const boilerplate = "# Copyright The Clusterhub Authors.\n# SPDX-License-Identifier: Apache-2.0\n"

// manifest is that of the plugin, for an index of krew.
func manifest(version string, platforms []platform) ([]byte, error) {
	data, err := yaml.Marshal(plugin{
		APIVersion: krewVersion, Kind: "Plugin", Metadata: metadata{Name: pluginName},
		Spec: spec{
			Version: version, Homepage: "https://github.com/clusterhub/clusterhub", Platforms: platforms,
			ShortDescription: "Set up hubs of clusters, and join clusters to them",
			Description: "Sets up a hub for clusters to join, joins clusters to hubs, accepts them, and gives access to them.\n" +
				"A hub serves Open Cluster Management's API of clusters and sets to users of kubectl.\n",
		},
	})
	return bytes.Join([][]byte{[]byte(boilerplate), data}, nil), err
}
