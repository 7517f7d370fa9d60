// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package files reads files that are replaced while the agent runs: kubeconfigs, and the folder of an identity. Errors do not quote the content of
// files: it may be a token.
package files

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/command"
)

// maxSize is the maximum size of a file, in bytes: that of a Secret, since most files are parts of one.
const maxSize = 1 << 20

// Kubeconfig is the access to a cluster that a kubeconfig configures.
type Kubeconfig struct {
	Config *rest.Config
	// Sum changes with the server, CA, proxy or user of the cluster. It does not depend on what client-go reloads by itself: the content of a
	// tokenFile, and of the files of a client certificate.
	Sum string
}

// ReadKubeconfig reads a kubeconfig. If the path is empty, it returns the in-cluster configuration. A token in a file is reloaded when it changes.
func ReadKubeconfig(path string) (Kubeconfig, error) {
	kubeconfig, err := readRESTConfig(path)
	if err != nil {
		return Kubeconfig{}, err
	}
	command.FollowToken(kubeconfig.Config)
	return kubeconfig, nil
}

func readRESTConfig(path string) (Kubeconfig, error) {
	if path == "" {
		config, err := rest.InClusterConfig()
		return Kubeconfig{Config: config}, err
	}
	config, err := readKubeconfig(path)
	if err != nil {
		return Kubeconfig{}, err
	}
	for _, user := range config.AuthInfos {
		if user.TokenFile != "" {
			user.Token = "" // the file has priority
		}
	}
	sum, err := sumOf(config)
	if err != nil {
		return Kubeconfig{}, err
	}
	restConfig, err := clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return Kubeconfig{}, fmt.Errorf("the kubeconfig %s cannot be used: %w", path, err)
	}
	return Kubeconfig{Config: restConfig, Sum: sum}, nil
}

// ReadMountedKubeconfig reads a kubeconfig in a mounted Secret like ReadKubeconfig. A user who may write the Secret must not be able to make the agent start
// programs, or send the token of its pod to another server: so the kubeconfig may only name files beside it.
func ReadMountedKubeconfig(path string) (Kubeconfig, error) {
	kubeconfig, err := readRESTConfig(path)
	if err != nil {
		return Kubeconfig{}, err
	}
	if kubeconfig.Config.ExecProvider != nil || kubeconfig.Config.AuthProvider != nil {
		return Kubeconfig{}, fmt.Errorf("the kubeconfig %s has a user with a credential plugin (exec or auth-provider), which is not supported: "+
			"put a token into a file beside it, and name that in tokenFile", path)
	}
	beside, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return Kubeconfig{}, err
	}
	for _, file := range []string{kubeconfig.Config.BearerTokenFile, kubeconfig.Config.CertFile, kubeconfig.Config.KeyFile} {
		if file != "" && filepath.Dir(file) != beside {
			return Kubeconfig{}, fmt.Errorf("the kubeconfig %s names a file for its user that is not beside it: put the file there, and name it "+
				"without a folder", path)
		}
	}
	command.FollowToken(kubeconfig.Config)
	return kubeconfig, nil
}

// HubSum returns a hash that changes with the address of the hub in a kubeconfig, and with how the hub is trusted. The user does not affect it.
func HubSum(path string) (string, error) {
	config, err := readKubeconfig(path)
	if err != nil {
		return "", err
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = clientcmdapi.NewAuthInfo()
	}
	return sumOf(config)
}

// readKubeconfig returns a kubeconfig with its current context only, and with the content of its CA file.
func readKubeconfig(path string) (*clientcmdapi.Config, error) {
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, fmt.Errorf("%s has no valid kubeconfig", path)
	}
	if err := clientcmdapi.MinifyConfig(config); err != nil {
		return nil, fmt.Errorf("the kubeconfig %s: %w", path, err)
	}
	for _, user := range config.AuthInfos {
		user.LocationOfOrigin = path
	}
	for _, cluster := range config.Clusters {
		cluster.LocationOfOrigin = path
		if err := command.CheckProxyURL(cluster.ProxyURL); err != nil {
			return nil, fmt.Errorf("the kubeconfig %s has an invalid proxy-url: it %w", path, err)
		}
	}
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		return nil, fmt.Errorf("the kubeconfig %s: %w", path, err)
	}
	for _, cluster := range config.Clusters {
		if len(cluster.CertificateAuthorityData) == 0 && cluster.CertificateAuthority != "" {
			cluster.CertificateAuthorityData, err = read(cluster.CertificateAuthority)
			if err != nil {
				return nil, fmt.Errorf("the certificate authority of the kubeconfig %s: %w", path, err)
			}
		}
		cluster.CertificateAuthority = ""
	}
	return config, nil
}

func sumOf(config *clientcmdapi.Config) (string, error) {
	written, err := clientcmd.Write(*config)
	if err != nil {
		return "", errors.New("a kubeconfig cannot be written")
	}
	sum := sha256.Sum256(written)
	return hex.EncodeToString(sum[:]), nil
}

// read reads a regular file: others may block the reader.
func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxSize+1))
	if err == nil && len(data) > maxSize {
		err = fmt.Errorf("%s has more than %d bytes", path, maxSize)
	}
	return data, err
}
