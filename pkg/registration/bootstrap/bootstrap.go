// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bootstrap has the rules for kubeconfigs by which agents find their hub: hub-agent uses them, and hub-operator reports an invalid
// kubeconfig before there is an agent.
package bootstrap

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/command"
)

// MaxSize is the maximum size of a bootstrap kubeconfig of a Secret, in bytes.
const MaxSize = 256 << 10

// Parse parses a bootstrap kubeconfig of a Secret. The result has only the current context. It refuses what an agent could not use, and what it
// must not use: files and programs, and a hub without verification, as the agent does what its hub says.
//
// An error completes a sentence about the kubeconfig, such as "has no current context". It quotes nothing of it: more users see the error than may
// read the Secret.
func Parse(data []byte) (*clientcmdapi.Config, error) {
	if len(data) > MaxSize {
		return nil, fmt.Errorf("has %d bytes, and may have %d: leave the context of the hub, as by kubectl config view --flatten --minify",
			len(data), MaxSize)
	}
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, errors.New("cannot be read as a kubeconfig")
	}
	cluster, err := Cluster(config)
	if err != nil {
		return nil, err
	}
	user := config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo]
	if user == nil || clientcmdapi.MinifyConfig(config) != nil {
		return nil, errors.New("must name a user that is in it in its current context: put a bootstrap token of the hub there")
	}
	for _, check := range []func() error{
		func() error { return CheckNoFiles(config) },
		func() error { return checkCluster(cluster) },
		func() error { return checkUser(user) },
	} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	if _, err := clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig(); err != nil {
		return nil, errors.New("has a user or a cluster with fields that do not go together, such as token and username")
	}
	return config, nil
}

// Cluster returns the cluster of the current context, which has a server.
func Cluster(config *clientcmdapi.Config) (*clientcmdapi.Cluster, error) {
	current, ok := config.Contexts[config.CurrentContext]
	if !ok {
		return nil, errors.New("has no current context")
	}
	cluster, ok := config.Clusters[current.Cluster]
	if !ok || cluster.Server == "" {
		return nil, errors.New("has no server of the hub in its current context")
	}
	return cluster, nil
}

// CheckNoFiles refuses a kubeconfig of a secret that names files or programs. They would be those of the agent, such as the token of its pod, and
// the content of a secret is from a hub, or from users who may write nothing but secrets.
func CheckNoFiles(config *clientcmdapi.Config) error {
	for _, cluster := range config.Clusters {
		if cluster.CertificateAuthority != "" {
			return errors.New("names a file in certificate-authority, which a secret cannot have: put it into certificate-authority-data")
		}
	}
	for _, user := range config.AuthInfos {
		switch {
		case user.Exec != nil || user.AuthProvider != nil:
			return errors.New("has a user who logs in by a program (exec or auth-provider), and the agent runs none: put a token there")
		case user.TokenFile != "" || user.ClientCertificate != "" || user.ClientKey != "":
			return errors.New("names a file in tokenFile, client-certificate or client-key, which a secret cannot have: put a token there, " +
				"or client-certificate-data and client-key-data")
		}
	}
	return nil
}

func checkCluster(cluster *clientcmdapi.Cluster) error {
	server, err := url.Parse(cluster.Server)
	if err != nil || server.Hostname() == "" || !isPort(server.Port()) || server.User != nil || server.RawQuery != "" || server.Fragment != "" {
		return errors.New("has a server that is not a URL such as https://hub.example.com:6443, without credentials, query and fragment")
	}
	switch {
	case server.Scheme != "https":
		return errors.New("is insecure: its server must begin with https://, as the agent does what its hub says")
	case cluster.InsecureSkipTLSVerify:
		return errors.New("is insecure: it has insecure-skip-tls-verify, and the agent does what its hub says. Put the hub's CA into " +
			"certificate-authority-data in place of it")
	}
	// Without one, the CAs of the system are used.
	if ca := cluster.CertificateAuthorityData; len(ca) > 0 && !x509.NewCertPool().AppendCertsFromPEM(ca) {
		return errors.New("has no certificate in PEM in certificate-authority-data: put the hub's CA there")
	}
	if err := command.CheckProxyURL(cluster.ProxyURL); err != nil {
		return fmt.Errorf("has an invalid proxy-url: it %w", err)
	}
	return nil
}

// isPort also accepts an empty port.
func isPort(port string) bool {
	_, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil
}

func checkUser(user *clientcmdapi.AuthInfo) error {
	byCertificate := len(user.ClientCertificateData) > 0 || len(user.ClientKeyData) > 0
	switch {
	case user.Token == "" && user.Username == "" && !byCertificate:
		return errors.New("has a user without credentials: put a bootstrap token of the hub there")
	case user.Token != "" && !command.IsToken(user.Token):
		return fmt.Errorf("has an invalid token: it must have at most %d letters, digits and signs, and no space or line break", command.MaxToken)
	}
	if byCertificate {
		if _, err := tls.X509KeyPair(user.ClientCertificateData, user.ClientKeyData); err != nil {
			return errors.New("must have a certificate in client-certificate-data, and its key in client-key-data")
		}
	}
	return nil
}
