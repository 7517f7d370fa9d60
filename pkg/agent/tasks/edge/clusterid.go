// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/clusterhub/clusterhub/pkg/agent/spoke"
)

const (
	// pathIssuer and pathKeys are the paths of the OIDC discovery document and of the keys of the issuer of ServiceAccount tokens. Every
	// ServiceAccount may read them, by Kubernetes' own ClusterRole system:service-account-issuer-discovery.
	pathIssuer, pathKeys = "/.well-known/openid-configuration", "/openid/v1/jwks"
	// maxRead is the maximum number of bytes of a response that are read.
	maxRead = 1 << 20
)

// clusterID returns an ID that differs between clusters, and is the same for all agents of one, whatever rights they have: a hash of the issuer of
// the cluster's tokens, and of the CA certificates of its API server, which each pod has in a file. Two clusters have the same ID only if they share
// both the keys that sign tokens and those certificates. It changes when they do. It is empty if the agent may not read them.
func clusterID(ctx context.Context, c *spoke.Cluster) (string, error) {
	trusted, err := certificates(c.Config)
	if err != nil {
		return "", err
	}
	return idOf(func(path string) ([]byte, error) { return read(ctx, c, path) }, trusted)
}

func read(ctx context.Context, c *spoke.Cluster, path string) ([]byte, error) {
	answer, err := c.Client.Discovery().RESTClient().Get().AbsPath(path).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	defer func() { _ = answer.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer, maxRead+1))
	if err == nil && len(body) > maxRead {
		err = fmt.Errorf("it has more than %d bytes", maxRead)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return body, nil
}

// certificates returns the CA certificates of the API server, or none if the system's are used.
func certificates(config *rest.Config) (all []string, err error) {
	bundle := config.CAData
	if len(bundle) == 0 {
		if config.CAFile == "" {
			return nil, nil
		}
		bundle, err = os.ReadFile(config.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading the certificates of the cluster: %w", err)
		}
	}
	found, err := cert.ParseCertsPEM(bundle)
	if err != nil {
		return nil, fmt.Errorf("reading the certificates of the cluster: %w", err)
	}
	for _, one := range found {
		all = append(all, base64.StdEncoding.EncodeToString(one.Raw))
	}
	return all, nil
}

// idOf returns the ID of a cluster with these certificates.
func idOf(read func(path string) ([]byte, error), certificates []string) (string, error) {
	issuer, err := read(pathIssuer)
	var keys []byte
	if err == nil {
		keys, err = read(pathKeys)
	}
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var is struct {
		Issuer string `json:"issuer"`
	}
	var has struct {
		Keys []map[string]any `json:"keys"`
	}
	if err := json.Unmarshal(issuer, &is); err != nil {
		return "", fmt.Errorf("reading %s: %w", pathIssuer, err)
	}
	if err := json.Unmarshal(keys, &has); err != nil {
		return "", fmt.Errorf("reading %s: %w", pathKeys, err)
	}
	if is.Issuer == "" || len(has.Keys) == 0 || len(certificates) == 0 {
		return "", nil
	}
	var signing []string
	for _, key := range has.Keys {
		text, err := json.Marshal(key) // the keys of a map are sorted
		if err != nil {
			return "", err
		}
		signing = append(signing, string(text))
	}
	slices.Sort(signing)
	text, err := json.Marshal([]any{is.Issuer, signing, slices.Sorted(slices.Values(certificates))})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
