// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
)

const (
	// rememberedItems and rememberedSize bound the encodings that are kept: 32 MiB at most.
	rememberedItems = 2048
	rememberedSize  = 16 << 10
	// longList is one that would push everything else out.
	longList = rememberedItems / 4
)

// listEncoder encodes lists to JSON item by item, and remembers the items. Lists of one set are what clients ask for
// most, again and again, and encoding their items is most of what such a list costs.
type listEncoder struct {
	runtime.Encoder
	version schema.GroupVersion
	items   *lru.Cache
}

// itemKey names one encoding. An object with a UID and a resource version never changes.
type itemKey struct {
	version         schema.GroupVersion
	uid             types.UID
	resourceVersion string
}

// Encode implements runtime.Encoder.
func (e *listEncoder) Encode(obj runtime.Object, w io.Writer) error {
	list, ok := obj.(metav1.ListInterface)
	if !ok || !meta.IsListType(obj) || meta.LenList(obj) > longList {
		return e.Encoder.Encode(obj, w)
	}
	kind, err := e.kindOf(obj)
	if err != nil {
		return e.Encoder.Encode(obj, w)
	}
	metadata, err := json.Marshal(metav1.ListMeta{
		ResourceVersion: list.GetResourceVersion(), Continue: list.GetContinue(), RemainingItemCount: list.GetRemainingItemCount(),
	})
	if err != nil {
		return err
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":[`, kind, e.version, metadata)
	first := true
	err = meta.EachListItem(obj, func(item runtime.Object) error {
		encoded, err := e.item(item)
		if err != nil {
			return err
		}
		if !first {
			out.WriteByte(',')
		}
		first = false
		out.Write(encoded)
		return nil
	})
	if err != nil {
		return err
	}
	out.WriteString("]}\n")
	_, err = w.Write(out.Bytes())
	return err
}

// kindOf returns the kind of an internal list.
func (e *listEncoder) kindOf(obj runtime.Object) (string, error) {
	kinds, _, err := Scheme.ObjectKinds(obj)
	if err != nil {
		return "", err
	}
	return kinds[0].Kind, nil
}

// item returns the encoding of one item as it stands in a list: without its type.
func (e *listEncoder) item(obj runtime.Object) ([]byte, error) {
	object, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	key := itemKey{e.version, object.GetUID(), object.GetResourceVersion()}
	keep := key.uid != "" && key.resourceVersion != ""
	if keep {
		if encoded, ok := e.items.Get(key); ok {
			return encoded.([]byte), nil
		}
	}
	var out bytes.Buffer
	if err := e.Encoder.Encode(obj, &out); err != nil {
		return nil, err
	}
	encoded, err := withoutType(bytes.TrimSuffix(out.Bytes(), []byte("\n")))
	if err != nil {
		return nil, err
	}
	if keep && len(encoded) <= rememberedSize {
		encoded = bytes.Clone(encoded)
		e.items.Add(key, encoded)
	}
	return encoded, nil
}

// withoutType cuts the fields kind and apiVersion off, which an encoded object of ours begins with.
func withoutType(object []byte) ([]byte, error) {
	rest := object
	for _, field := range []string{"kind", "apiVersion"} {
		after, ok := bytes.CutPrefix(rest[1:], []byte(`"`+field+`":"`))
		end := bytes.IndexByte(after, '"')
		if !ok || end < 0 || end+1 >= len(after) || after[end+1] != ',' {
			return nil, fmt.Errorf("an encoded object begins with %.80q, not with its %s", object, field)
		}
		// The comma's place becomes that of the brace.
		rest = after[end+1:]
	}
	return append([]byte{'{'}, rest[1:]...), nil
}
