// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
)

// digest stands for a set of (subject, name) pairs: the sum, modulo 2^256, of the SHA-256 of each. A sum does not depend on
// the order of its terms and a term can be taken out again, so a change costs the pairs that it changes.
//
// A user who may write roles and does some 2^32 work could find two sets with one sum. The effect would be that an open
// watch learns of their change with the next one: what a snapshot answers never comes from a digest.
type digest [4]uint64

func (d *digest) add(term digest) {
	var carry uint64
	for i := range d {
		d[i], carry = bits.Add64(d[i], term[i], carry)
	}
}

func (d *digest) remove(term digest) {
	var borrow uint64
	for i := range d {
		d[i], borrow = bits.Sub64(d[i], term[i], borrow)
	}
}

func (d digest) String() string {
	var bytes []byte
	for _, word := range d {
		bytes = binary.BigEndian.AppendUint64(bytes, word)
	}
	return hex.EncodeToString(bytes)
}

// nameTerm is the term of one name that a subject may reach, allTerm that of a subject who may reach all. The length
// before the subject keeps ("a", "bc") and ("ab", "c") apart.
func nameTerm(who subject, name string) digest { return term(who, 'n', name) }

func allTerm(who subject) digest { return term(who, 'a', "") }

func term(who subject, form byte, name string) digest {
	var space [256]byte
	text := space[:0]
	if who.group {
		text = append(text, 'g')
	} else {
		text = append(text, 'u')
	}
	text = binary.AppendUvarint(text, uint64(len(who.name)))
	text = append(text, who.name...)
	text = append(text, form)
	text = append(text, name...)

	sum := sha256.Sum256(text)
	var d digest
	for i := range d {
		d[i] = binary.BigEndian.Uint64(sum[8*i:])
	}
	return d
}
