// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package exclusive lets an object claim a name that no other object may have at the same time. The claim is a key in etcd that is written and
// deleted in the same transaction as the object, so that of two racing writers exactly one wins, through whatever replica, and no crash leaves a
// claim without its object. A claim that lost its object in another way can be taken over.
package exclusive

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
)

// ClaimedError reports that another object holds the claim.
type ClaimedError struct {
	// Claim is the requested claim, and Holder the name of the object that has it.
	Claim, Holder string
}

func (e *ClaimedError) Error() string {
	return fmt.Sprintf("%q is claimed by %q", e.Claim, e.Holder)
}

// transition has the changes of claims by one write of an object. It is passed in the context from the storage, which knows the object, to the
// client, which writes it.
type transition struct {
	holder           string
	release, acquire string
	// holds reports whether another object has the claim to acquire, and returns the revision at which it was read, or 0 if it does not exist.
	holds func(ctx context.Context, name string) (has bool, revision int64)
}

type transitionKey struct{}

func withTransition(ctx context.Context, t *transition) context.Context {
	return context.WithValue(ctx, transitionKey{}, t)
}

// client adds the claims of a transition to the transaction that writes the object.
type client struct {
	kubernetes.Interface
	kv clientv3.KV
	// prefix is the directory of the claims. It is outside of the directories that are watched for objects, so that an etcd revision has one event
	// there at most.
	prefix string
}

var _ kubernetes.Interface = &client{}

// OptimisticPut implements kubernetes.Interface. It returns a ClaimedError if another object holds the claim.
func (c *client) OptimisticPut(ctx context.Context, key string, value []byte, expectedRevision int64, opts kubernetes.PutOptions) (resp kubernetes.PutResponse, err error) {
	t, _ := ctx.Value(transitionKey{}).(*transition)
	if t == nil || t.release == t.acquire {
		return c.Interface.OptimisticPut(ctx, key, value, expectedRevision, opts)
	}
	compares := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", expectedRevision)}
	writes := []clientv3.Op{clientv3.OpPut(key, string(value), clientv3.WithLease(opts.LeaseID))}
	reads := []clientv3.Op{clientv3.OpGet(key)}
	var free []clientv3.Cmp
	if t.release != "" {
		writes = append(writes, c.releaseOp(t))
	}
	if t.acquire != "" {
		claim := path.Join(c.prefix, t.acquire)
		free = unclaimed(claim)
		writes = append(writes, clientv3.OpPut(claim, t.holder))
		reads = append(reads, clientv3.OpGet(claim))
	}
	for {
		txn, err := c.kv.Txn(ctx).If(slices.Concat(compares, free)...).Then(writes...).Else(reads...).Commit()
		if err != nil {
			return resp, err
		}
		resp.Succeeded = txn.Succeeded
		resp.Revision = txn.Header.Revision
		if txn.Succeeded {
			return resp, nil
		}
		object := first(txn, 0)
		if t.acquire == "" || modRevision(object) != expectedRevision {
			if opts.GetOnFailure {
				resp.KV = object
			}
			return resp, nil
		}
		// The object is as expected, so the claim failed. A further attempt fails only because of a concurrent write.
		free, err = c.free(ctx, key, t, first(txn, 1))
		if err != nil {
			return resp, err
		}
	}
}

// free returns the condition under which a claim can be acquired, or a ClaimedError. A claim outlives its object if that is deleted without being
// decoded, or is missing in a restored etcd.
func (c *client) free(ctx context.Context, key string, t *transition, held *mvccpb.KeyValue) ([]clientv3.Cmp, error) {
	claim := path.Join(c.prefix, t.acquire)
	if held == nil {
		return unclaimed(claim), nil
	}
	unchanged := clientv3.Compare(clientv3.ModRevision(claim), "=", held.ModRevision)
	holder := string(held.Value)
	if holder == t.holder {
		// Left by a previous object of this name: the object being written does not have it yet.
		return []clientv3.Cmp{unchanged}, nil
	}
	has, revision := t.holds(ctx, holder)
	if has {
		return nil, &ClaimedError{Claim: t.acquire, Holder: holder}
	}
	return []clientv3.Cmp{unchanged, clientv3.Compare(clientv3.ModRevision(sibling(key, holder)), "=", revision)}, nil
}

func unclaimed(claim string) []clientv3.Cmp {
	return []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(claim), "=", 0)}
}

// sibling returns the key of another object in the same directory.
func sibling(key, name string) string {
	return key[:strings.LastIndexByte(key, '/')+1] + name
}

// OptimisticDelete implements kubernetes.Interface.
func (c *client) OptimisticDelete(ctx context.Context, key string, expectedRevision int64, opts kubernetes.DeleteOptions) (resp kubernetes.DeleteResponse, err error) {
	t, _ := ctx.Value(transitionKey{}).(*transition)
	if t == nil || t.release == "" {
		return c.Interface.OptimisticDelete(ctx, key, expectedRevision, opts)
	}
	txn, err := c.kv.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(key), "=", expectedRevision)).
		Then(clientv3.OpDelete(key), c.releaseOp(t)).
		Else(clientv3.OpGet(key)).
		Commit()
	if err != nil {
		return resp, err
	}
	resp.Succeeded = txn.Succeeded
	resp.Revision = txn.Header.Revision
	if !txn.Succeeded && opts.GetOnFailure {
		resp.KV = first(txn, 0)
	}
	return resp, nil
}

// releaseOp returns an operation that deletes a claim if it is the holder's.
func (c *client) releaseOp(t *transition) clientv3.Op {
	claim := path.Join(c.prefix, t.release)
	return clientv3.OpTxn(
		[]clientv3.Cmp{clientv3.Compare(clientv3.Value(claim), "=", t.holder)},
		[]clientv3.Op{clientv3.OpDelete(claim)},
		nil)
}

func first(txn *clientv3.TxnResponse, i int) *mvccpb.KeyValue {
	if kvs := txn.Responses[i].GetResponseRange().GetKvs(); len(kvs) > 0 {
		return kvs[0]
	}
	return nil
}

func modRevision(kv *mvccpb.KeyValue) int64 {
	if kv == nil {
		return 0
	}
	return kv.ModRevision
}
