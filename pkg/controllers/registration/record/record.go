// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package record has the hub's record of an accepted cluster: the driver, what it has granted and to whom, and the key of the cluster's agent. It
// is in a ConfigMap with the name and the label of the cluster, in a namespace that only the hub uses: no agent can write there.
//
// A record is written before anything is granted, and removed after all of it has been revoked. Every write is conditional on the version that was
// read.
package record

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/kit"
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

// Record is the record of an accepted cluster.
type Record struct {
	// Driver is the driver by which the cluster was accepted. It is empty when nothing is granted or must be revoked.
	Driver string
	// Identity is the identity that the driver grants, in a form that only the driver reads.
	Identity driver.Record
	// UID is the UID of the ManagedCluster that was accepted. Another one of the same name is another cluster.
	UID types.UID
	// Granted is the time at which the grant was complete, or zero.
	Granted time.Time
	// Note is the warning of the last call of the driver.
	Note string
	// Revoking reports that the record must be revoked completely, even if the cluster is accepted again in between.
	Revoking bool

	// Key pins the key of the cluster's agent: the SHA-256 of the last public key (SubjectPublicKeyInfo, DER) for which a certificate was approved,
	// in hex. Before the first approval it is the value of registration.AnnotationAgentKey when the cluster was accepted. It is written before the
	// certificate is approved. registration.UndecidedKey stands for several.
	Key string
	// KeySince is the time (RFC 3339) at which the key was pinned. pkg/controllers/registration/clustercertificates changes both.
	KeySince string
	// KeyNamed is the value of registration.AnnotationAgentKey when the cluster was accepted, registration.NoKey if it was not set. It
	// distinguishes an acceptance with another key from one that leaves the agent its key. Records of earlier versions do not have it.
	KeyNamed string
	// Requesters are the users who may request the first certificate, from registration.AnnotationRequesters.
	Requesters string
}

// New returns a ConfigMap for the record of a cluster, without the record.
func New(cluster string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: Namespace, Name: cluster, Labels: map[string]string{registration.ClusterNameLabel: cluster},
	}}
}

// Get returns the ConfigMap of a cluster from a cache or from the API server, or nil if it does not exist.
func Get(ctx context.Context, from client.Reader, cluster string) (*corev1.ConfigMap, error) {
	kept := New(cluster)
	if err := from.Get(ctx, client.ObjectKeyFromObject(kept), kept); err != nil {
		return nil, kit.IgnoreGone(err)
	}
	return kept, nil
}

// Patch changes the record in a ConfigMap, if there is anything to change. It fails if the ConfigMap has changed since it was read.
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

// Of returns the record of a ConfigMap, which may be nil.
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
	// A time that cannot be parsed is no proof that anything was granted.
	r.Granted, _ = time.Parse(time.RFC3339, from[prefix+keyGranted])
	return r
}

// Write sets the data of a ConfigMap to the record, and nothing else.
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

// Revoked returns what is left of a record when all of it has been revoked: the key of the cluster's agent. Otherwise, when the cluster is accepted
// again, the first requester would take the agent's place.
func (r Record) Revoked() Record {
	if r.Key == "" || r.Key == registration.UndecidedKey {
		return Record{}
	}
	return Record{UID: r.UID, Key: r.Key, KeySince: r.KeySince, KeyNamed: r.KeyNamed}
}

// SameIdentity reports whether both have the same identity.
func (r Record) SameIdentity(o Record) bool { return r.Driver == o.Driver && r.Identity == o.Identity }
