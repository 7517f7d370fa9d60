// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/view"
)

// listEncoder encodes lists of clusters and of members as JSON without reflection. They are the most frequent responses, and reflection was most of
// their cost. Its output is the same as that of the wrapped encoder, which encodes all other objects.
type listEncoder struct {
	runtime.Encoder
	// version is the version of the output: clusters are in two groups.
	version runtime.GroupVersioner
}

// Encode implements runtime.Encoder.
func (e listEncoder) Encode(obj runtime.Object, w io.Writer) error {
	switch list := obj.(type) {
	case *cluster.ManagedClusterList:
		return encodeList(w, e.start("ManagedClusterList"), &list.ListMeta, list.Items, e.start("ManagedCluster"), appendCluster)
	case *view.ClusterSetMemberList:
		return encodeList(w, e.start("ClusterSetMemberList"), &list.ListMeta, list.Items, e.start("ClusterSetMember"), appendMember)
	}
	return e.Encoder.Encode(obj, w)
}

// start returns the beginning of an object.
func (e listEncoder) start(kind string) string {
	return `{"kind":"` + kind + `","apiVersion":"` + e.version.Identifier() + `","metadata":`
}

// chunk is the size in bytes from which on encoded data is written. It is larger than the minimum size for compression, which depends on the size of
// the first write, and it bounds the memory for a list of the whole fleet.
const chunk = 256 << 10

var chunks = sync.Pool{New: func() any {
	buffer := make([]byte, 0, chunk+chunk/8)
	return &buffer
}}

// encodeList writes a list and its items, each with its beginning.
func encodeList[T any](
	w io.Writer, begin string, meta *metav1.ListMeta, items []T, beginItem string, appendItem func([]byte, *T) ([]byte, error),
) error {
	buffer := chunks.Get().(*[]byte)
	defer chunks.Put(buffer)
	metadata, err := json.Marshal(meta)
	if err != nil {
		return err
	}
	out := append((*buffer)[:0], begin...)
	out = append(out, metadata...)
	out = append(out, `,"items":`...)
	if items == nil {
		out = append(out, "null"...)
	} else {
		out = append(out, '[')
		for i := range items {
			if i > 0 {
				out = append(out, ',')
			}
			out, err = appendItem(append(out, beginItem...), &items[i])
			if err != nil {
				return err
			}
			if len(out) > chunk {
				if _, err := w.Write(out); err != nil {
					return err
				}
				out = out[:0]
			}
		}
		out = append(out, ']')
	}
	_, err = w.Write(append(out, "}\n"...))
	return err
}

// appendMeta appends the metadata of an object.
func appendMeta(out []byte, m *metav1.ObjectMeta) ([]byte, error) {
	out = append(out, '{')
	out = appendField(out, `"name":`, m.Name)
	out = appendField(out, `"generateName":`, m.GenerateName)
	out = appendField(out, `"namespace":`, m.Namespace)
	out = appendField(out, `"selfLink":`, m.SelfLink) //nolint:staticcheck // It is not set any more, but would be written.
	out = appendField(out, `"uid":`, string(m.UID))
	out = appendField(out, `"resourceVersion":`, m.ResourceVersion)
	if m.Generation != 0 {
		out = append(separate(out), `"generation":`...)
		out = strconv.AppendInt(out, m.Generation, 10)
	}
	if !m.CreationTimestamp.IsZero() {
		out = append(separate(out), `"creationTimestamp":`...)
		out = appendTime(out, &m.CreationTimestamp)
	}
	if m.DeletionTimestamp != nil {
		out = append(separate(out), `"deletionTimestamp":`...)
		out = appendTime(out, m.DeletionTimestamp)
	}
	if m.DeletionGracePeriodSeconds != nil {
		out = append(separate(out), `"deletionGracePeriodSeconds":`...)
		out = strconv.AppendInt(out, *m.DeletionGracePeriodSeconds, 10)
	}
	out = appendStringMap(out, `"labels":{`, m.Labels)
	out = appendStringMap(out, `"annotations":{`, m.Annotations)
	if len(m.OwnerReferences) > 0 {
		owners, err := json.Marshal(m.OwnerReferences)
		if err != nil {
			return nil, err
		}
		out = append(append(separate(out), `"ownerReferences":`...), owners...)
	}
	out = appendStrings(out, `"finalizers":[`, m.Finalizers)
	if len(m.ManagedFields) > 0 {
		out = append(separate(out), `"managedFields":[`...)
		for i := range m.ManagedFields {
			var err error
			out, err = appendManagedFields(append(separate(out), '{'), &m.ManagedFields[i])
			if err != nil {
				return nil, err
			}
			out = append(out, '}')
		}
		out = append(out, ']')
	}
	return append(out, '}'), nil
}

func appendManagedFields(out []byte, f *metav1.ManagedFieldsEntry) ([]byte, error) {
	out = appendField(out, `"manager":`, f.Manager)
	out = appendField(out, `"operation":`, string(f.Operation))
	out = appendField(out, `"apiVersion":`, f.APIVersion)
	if f.Time != nil {
		out = append(separate(out), `"time":`...)
		out = appendTime(out, f.Time)
	}
	out = appendField(out, `"fieldsType":`, f.FieldsType)
	if f.FieldsV1 != nil {
		out = append(separate(out), `"fieldsV1":`...)
		if raw := f.FieldsV1.GetRawString(); raw != "" && !isLoose(raw) {
			out = append(out, raw...)
		} else {
			compact, err := json.Marshal(f.FieldsV1)
			if err != nil {
				return nil, err
			}
			out = append(out, compact...)
		}
	}
	return appendField(out, `"subresource":`, f.Subresource), nil
}

// isLoose reports whether encoding/json might change a value that is JSON already.
func isLoose(raw string) bool {
	for i := range len(raw) {
		if loose[raw[i]] {
			return true
		}
	}
	return false
}

// loose are the bytes because of which encoding/json might change a value that is JSON already: those that it escapes in strings, and white space.
var loose = func() (table [256]bool) {
	for c := range table {
		table[c] = c <= ' ' || c >= 0x7f || c == '<' || c == '>' || c == '&'
	}
	return table
}()

// appendMember appends a member of a list, after its beginning.
func appendMember(out []byte, m *view.ClusterSetMember) ([]byte, error) {
	out, err := appendMeta(out, &m.ObjectMeta)
	if err != nil {
		return nil, err
	}
	out = append(out, `,"spec":{"clusterSet":`...)
	out = appendString(out, m.Spec.ClusterSet)
	out = append(out, `,"cluster":`...)
	out = appendString(out, m.Spec.Cluster)
	out = append(out, `},"status":{"accepted":`...)
	out = strconv.AppendBool(out, m.Status.Accepted)
	out = append(out, `,"joined":`...)
	out = appendString(out, string(m.Status.Joined))
	out = append(out, `,"available":`...)
	out = appendString(out, string(m.Status.Available))
	out = appendField(out, `"kubernetesVersion":`, m.Status.KubernetesVersion)
	out = append(out, `,"selectedBy":{"type":`...)
	out = appendString(out, m.Status.SelectedBy.Type)
	out = appendField(out, `"selector":`, m.Status.SelectedBy.Selector)
	out = append(out, '}')
	out = appendStrings(out, `"taints":[`, m.Status.Taints)
	return append(out, "}}"...), nil
}

// separate appends a comma unless an object or a list has just begun.
func separate(out []byte) []byte {
	if last := out[len(out)-1]; last == '{' || last == '[' {
		return out
	}
	return append(out, ',')
}

// appendField appends a field that is omitted if it is empty.
func appendField(out []byte, name, value string) []byte {
	if value == "" {
		return out
	}
	out = append(separate(out), name...)
	return appendString(out, value)
}

// appendStrings appends a field that is omitted if it is empty.
func appendStrings(out []byte, name string, values []string) []byte {
	if len(values) == 0 {
		return out
	}
	out = append(separate(out), name...)
	for _, value := range values {
		out = appendString(separate(out), value)
	}
	return append(out, ']')
}

// appendStringMap appends a field that is omitted if it is empty.
func appendStringMap(out []byte, name string, values map[string]string) []byte {
	if len(values) == 0 {
		return out
	}
	out = append(separate(out), name...)
	var few [16]string
	for _, key := range sortedKeys(values, few[:0]) {
		out = appendString(separate(out), key)
		out = append(out, ':')
		out = appendString(out, values[key])
	}
	return append(out, '}')
}

// sortedKeys appends the sorted keys of a map to keys.
func sortedKeys[K cmp.Ordered, V any](values map[K]V, keys []K) []K {
	for key := range values {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// appendTime appends a time as its MarshalJSON does.
func appendTime(out []byte, t *metav1.Time) []byte {
	if t.IsZero() {
		return append(out, "null"...)
	}
	out = t.UTC().AppendFormat(append(out, '"'), time.RFC3339)
	return append(out, '"')
}

// quoted are the bytes that encoding/json escapes, and all that are not ASCII.
var quoted = func() (table [256]bool) {
	for c := range table {
		table[c] = c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&'
	}
	return table
}()

// appendString appends a string as encoding/json does, which encodes all strings that are not plain ASCII.
func appendString(out []byte, s string) []byte {
	for i := range len(s) {
		if quoted[s[i]] {
			encoded, err := json.Marshal(s)
			if err != nil {
				return append(out, `""`...) // a string always marshals
			}
			return append(out, encoded...)
		}
	}
	out = append(out, '"')
	out = append(out, s...)
	return append(out, '"')
}
