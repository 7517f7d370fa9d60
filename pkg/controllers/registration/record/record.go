// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package record has what the hub remembers of a cluster that it has accepted: by which driver, what that has granted and to
// whom, and the key of the cluster's agent. It is in a ConfigMap, named and labelled as the cluster, in a namespace that is the
// hub's alone: no agent can write there.
//
// A record is written before anything of it is granted, and removed after all of it has been revoked. Every write is locked to
// the version that was read.
package record

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/controllers/kit"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Namespace has the records, and nothing else.
const Namespace = cluster.RecordNamespace

// Keys of the data.
const (
	keyDriver     = "driver"
	keyIdentity   = "record"
	keyUID        = "cluster-uid"
	keyGranted    = "granted"
	keyNote       = "note"
	keyRevoking   = "revoking"
	keyKey        = "key-sha256"
	keyKeySince   = "key-since"
	keyKeyNamed   = "key-named"
	keyRequesters = "requesters"
)

var keys = []string{
	keyDriver, keyIdentity, keyUID, keyGranted, keyNote, keyRevoking, keyKey, keyKeySince, keyKeyNamed, keyRequesters,
}

// Record is what a cluster was accepted with.
type Record struct {
	// Driver is the driver by which the cluster was accepted. It is empty when nothing is granted, nor to be revoked.
	Driver string
	// Identity is what the driver grants, in a form that only the driver reads.
	Identity driver.Record
	// UID is that of the ManagedCluster that was accepted. Another one of the same name is another cluster.
	UID types.UID
	// Granted is when all of it had been granted, zero before.
	Granted time.Time
	// Note is what the driver has warned of when it was last called.
	Note string
	// Revoking says that it is to be revoked, to the end, whatever is wished meanwhile.
	Revoking bool

	// Key pins the key of the cluster's agent: the SHA-256 of the last public key (SubjectPublicKeyInfo, DER) for which a
	// certificate was approved, in hex. Until there is one it is that of registration.AnnotationAgentKey, as it was when the
	// cluster was accepted. It is written before the certificate is approved. registration.UndecidedKey stands for several.
	Key string
	// KeySince is when (RFC 3339) the key was pinned. pkg/controllers/registration/clustercertificates moves both.
	KeySince string
	// KeyNamed is what registration.AnnotationAgentKey said when the cluster was accepted, registration.NoKey for nothing. It
	// tells an acceptance that names another key from one that leaves the agent the key that it has. Records of earlier versions
	// do not have it.
	KeyNamed string
	// Requesters are the users who may ask for the first certificate, as registration.AnnotationRequesters named them.
	Requesters string
}

// New is a ConfigMap for the record of a cluster, without the record.
func New(cluster string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: Namespace, Name: cluster, Labels: map[string]string{registration.ClusterNameLabel: cluster},
	}}
}

// Get reads the ConfigMap of a cluster from a cache or from the API server. It is nil when there is none.
func Get(ctx context.Context, from client.Reader, cluster string) (*corev1.ConfigMap, error) {
	kept := New(cluster)
	if err := from.Get(ctx, client.ObjectKeyFromObject(kept), kept); err != nil {
		return nil, kit.IgnoreGone(err)
	}
	return kept, nil
}

// Patch changes the record in a ConfigMap, if there is anything to change. It fails if the ConfigMap has changed since it was
// read.
func Patch(ctx context.Context, c client.Writer, kept *corev1.ConfigMap, change func(*Record)) error {
	_, err := kit.Patch(ctx, c, kept, func(kept *corev1.ConfigMap) {
		// Without its label it would be in no cache.
		metav1.SetMetaDataLabel(&kept.ObjectMeta, registration.ClusterNameLabel, kept.Name)
		now := Of(kept)
		change(&now)
		now.Write(kept)
	})
	return err
}

// Of reads the record of a ConfigMap, which may be nil.
func Of(kept *corev1.ConfigMap) Record {
	if kept == nil {
		return Record{}
	}
	return read(kept.Data, "")
}

// read reads a record whose keys begin with a prefix.
func read(from map[string]string, prefix string) Record {
	r := Record{
		Driver: from[prefix+keyDriver], Identity: driver.Record(from[prefix+keyIdentity]), UID: types.UID(from[prefix+keyUID]),
		Note: from[prefix+keyNote], Key: from[prefix+keyKey], KeySince: from[prefix+keyKeySince], KeyNamed: from[prefix+keyKeyNamed],
		Requesters: from[prefix+keyRequesters],
	}
	_, r.Revoking = from[prefix+keyRevoking]
	// A time that cannot be read is no proof that anything was granted.
	r.Granted, _ = time.Parse(time.RFC3339, from[prefix+keyGranted])
	return r
}

// Write makes a ConfigMap say what the record says, and nothing else.
func (r Record) Write(kept *corev1.ConfigMap) {
	data := map[string]string{
		keyUID: string(r.UID), keyKey: r.Key, keyKeySince: r.KeySince, keyKeyNamed: r.KeyNamed, keyRequesters: r.Requesters,
	}
	if r.Driver != "" {
		data[keyDriver], data[keyNote] = r.Driver, r.Note
		if !r.Granted.IsZero() {
			data[keyGranted] = r.Granted.UTC().Format(time.RFC3339)
		}
		if r.Revoking {
			data[keyRevoking] = "true"
		}
	}
	for key, value := range data {
		if value == "" {
			delete(data, key)
		}
	}
	if r.Driver != "" {
		data[keyIdentity] = string(r.Identity) // also if it is empty
	}
	kept.Data, kept.BinaryData = data, nil
}

// Revoked is what stays of a record when all of it has been revoked: whose key the cluster's agent has. Else who asks first
// when the cluster is accepted again would take its place.
func (r Record) Revoked() Record {
	if r.Key == "" || r.Key == registration.UndecidedKey {
		return Record{}
	}
	return Record{UID: r.UID, Key: r.Key, KeySince: r.KeySince, KeyNamed: r.KeyNamed}
}

// SameIdentity says that both stand for the same identity.
func (r Record) SameIdentity(o Record) bool { return r.Driver == o.Driver && r.Identity == o.Identity }
