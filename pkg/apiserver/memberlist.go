// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterhub/clusterhub/pkg/apis/view"
)

// memberListEncoder writes lists of members to JSON directly. A list of one set is what the product is asked for most,
// and with reflection encoding was most of what it costs. What it writes is what the encoder that it wraps writes, to
// which it leaves all other objects.
type memberListEncoder struct{ runtime.Encoder }

// buffers are reused, up to the size of a list of some hundred members.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

const keptBuffer = 1 << 20

// Encode implements runtime.Encoder.
func (e memberListEncoder) Encode(obj runtime.Object, w io.Writer) error {
	list, ok := obj.(*view.ClusterSetMemberList)
	if !ok {
		return e.Encoder.Encode(obj, w)
	}
	metadata, err := json.Marshal(&list.ListMeta)
	if err != nil {
		return err
	}
	buffer := buffers.Get().(*[]byte)
	out := (*buffer)[:0]
	out = append(out, `{"kind":"ClusterSetMemberList","apiVersion":"view.clusterhub.dev/v1alpha1","metadata":`...)
	out = append(out, metadata...)
	out = append(out, `,"items":[`...)
	plain := true
	for i := range list.Items {
		if i > 0 {
			out = append(out, ',')
		}
		if out, plain = appendMember(out, &list.Items[i]); !plain {
			break
		}
	}
	if plain && list.Items != nil {
		out = append(out, "]}\n"...)
		_, err = w.Write(out)
	} else {
		err = e.Encoder.Encode(obj, w)
	}
	if cap(out) <= keptBuffer {
		*buffer = out
		buffers.Put(buffer)
	}
	return err
}

// appendMember appends a member, or says that it has what members do not have.
func appendMember(out []byte, m *view.ClusterSetMember) ([]byte, bool) {
	if !plainMeta(&m.ObjectMeta) {
		return out, false
	}
	out = append(out, `{"metadata":{`...)
	out = appendField(out, `"name":`, m.Name)
	out = appendField(out, `"uid":`, string(m.UID))
	out = appendField(out, `"resourceVersion":`, m.ResourceVersion)
	if !m.CreationTimestamp.IsZero() {
		out = append(separate(out), `"creationTimestamp":"`...)
		out = m.CreationTimestamp.UTC().AppendFormat(out, time.RFC3339)
		out = append(out, '"')
	}
	if len(m.Labels) > 0 {
		out = append(separate(out), `"labels":{`...)
		var few [16]string
		keys := few[:0]
		for k := range m.Labels {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			out = appendString(separate(out), k)
			out = append(out, ':')
			out = appendString(out, m.Labels[k])
		}
		out = append(out, '}')
	}
	out = append(out, `},"spec":{"clusterSet":`...)
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
	if len(m.Status.Taints) > 0 {
		out = append(out, `,"taints":[`...)
		for i, taint := range m.Status.Taints {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendString(out, taint)
		}
		out = append(out, ']')
	}
	return append(out, "}}"...), true
}

// plainMeta says that an object has no other metadata than what a member is made with.
func plainMeta(m *metav1.ObjectMeta) bool {
	//nolint:staticcheck // SelfLink is not set any more, but would be written.
	return m.GenerateName == "" && m.Namespace == "" && m.SelfLink == "" && m.Generation == 0 &&
		m.DeletionTimestamp == nil && m.DeletionGracePeriodSeconds == nil && len(m.Annotations) == 0 &&
		len(m.OwnerReferences) == 0 && len(m.Finalizers) == 0 && len(m.ManagedFields) == 0
}

// separate appends a comma unless an object has just begun.
func separate(out []byte) []byte {
	if out[len(out)-1] == '{' {
		return out
	}
	return append(out, ',')
}

// appendField appends a field that is left out when it is empty.
func appendField(out []byte, name, value string) []byte {
	if value == "" {
		return out
	}
	out = append(separate(out), name...)
	return appendString(out, value)
}

// quoted are the bytes that encoding/json does not write as they are, and all that is not ASCII.
var quoted = func() (table [256]bool) {
	for c := range table {
		table[c] = c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&'
	}
	return table
}()

// appendString appends a string as encoding/json does, to which it leaves all but plain ASCII.
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
