// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"os"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
)

// TestEnsure_MigratesToSingleCA takes over clusters that an earlier version created, with one CA for everything: their users continue to trust them, and
// certificates of that CA no longer give access.
func TestEnsure_MigratesToSingleCA(t *testing.T) {
	p, object := newProvider(t, testOptions(t)), newCluster("blue")
	certs := p.cluster(object.UID).certificates()
	for _, was := range []localserver.Certificates{p.etcdCertificates(), certs} {
		one, err := was.Authority("ca", "one")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"etcd", "admin", apiServer, controllerManager} {
			if err := one.Peer(name, name); err != nil {
				t.Fatal(err)
			}
		}
	}
	before := map[string][]byte{}
	for _, file := range []string{certs.Cert("ca"), certs.Cert("admin"), certs.Key("admin"), p.etcdCertificates().Cert("etcd")} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		before[file] = data
	}
	ensure(t, p, object)
	config, client := adminOf(t, p, object)
	if user, err := whoAmI(t.Context(), client); err != nil || user.Username != "cluster-provider" {
		t.Errorf("the admin is %q: %v", user.Username, err)
	}
	if !bytes.Equal(config.CAData, before[certs.Cert("ca")]) {
		t.Error("users of the cluster no longer trust it")
	}
	config.CertData, config.KeyData = before[certs.Cert("admin")], before[certs.Key("admin")]
	if user, err := whoAmI(t.Context(), clientOf(t, config)); !apierrors.IsUnauthorized(err) {
		t.Errorf("with a certificate of the one CA, a client is %q: %v", user.Username, err)
	}
	if data, err := os.ReadFile(p.etcdCertificates().Cert("etcd")); err != nil || bytes.Equal(data, before[p.etcdCertificates().Cert("etcd")]) {
		t.Errorf("etcd has the certificate that it had: %v", err)
	}
}
