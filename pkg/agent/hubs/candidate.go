// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hubs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/agent/files"
	"github.com/clusterhub/clusterhub/pkg/registration/bootstrap"
)

// Candidate is a hub that an agent may join.
type Candidate struct {
	// Name is the name of the Secret with the bootstrap kubeconfig, and Path is the path of the kubeconfig.
	Name, Path string
}

// unusableError reports why a bootstrap kubeconfig cannot be used.
type unusableError struct{ message string }

func (e *unusableError) Error() string { return e.message }

// Read reads the bootstrap kubeconfig. A user who may write the Secret, and nothing else, must be able neither to start a program nor to send a file
// of the pod to a server of that user: bootstrap.Parse enforces that. Errors quote nothing of the file.
func (c Candidate) Read() (*clientcmdapi.Config, error) {
	base := filepath.Base(c.Path)
	found, err := files.ReadFolder(filepath.Dir(c.Path), base)
	if err != nil {
		return nil, &unusableError{fmt.Sprintf("the bootstrap kubeconfig %s cannot be read: %v", c.Name, err)}
	}
	data, ok := found[base]
	if !ok {
		return nil, &unusableError{fmt.Sprintf("the bootstrap kubeconfig %s does not exist: create the Secret %s with the key %s", c.Name, c.Name, base)}
	}
	config, err := bootstrap.Parse(data)
	if err != nil {
		return nil, &unusableError{fmt.Sprintf("the bootstrap kubeconfig %s %v", c.Name, err)}
	}
	return config, nil
}

// Sum returns a hash that changes with the address of the hub in the kubeconfig, and with how the hub is trusted. The user does not affect it.
func (c Candidate) Sum() (string, error) {
	config, err := c.Read()
	if err != nil {
		return "", err
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = clientcmdapi.NewAuthInfo()
	}
	written, err := clientcmd.Write(*config)
	if err != nil {
		return "", &unusableError{fmt.Sprintf("the bootstrap kubeconfig %s cannot be written", c.Name)}
	}
	sum := sha256.Sum256(written)
	return hex.EncodeToString(sum[:]), nil
}

// server returns the address of the hub, or "" if the kubeconfig cannot be used.
func (c Candidate) server() string {
	config, err := c.Read()
	if err != nil {
		return ""
	}
	return serverOf(config)
}

func serverOf(config *clientcmdapi.Config) string {
	cluster, err := bootstrap.Cluster(config)
	if err != nil {
		return ""
	}
	return cluster.Server
}
