// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
)

// digest is a digest of a set of (subject, name) pairs: the sum, modulo 2^256, of the SHA-256 of each. A sum does not depend on the order of its
// terms and a term can be subtracted again, so the cost of a change depends on the number of changed pairs.
//
// A user who may write roles and spends some 2^32 steps could find two sets with the same sum. The effect would be that an open watch learns of their
// change with the next one: the names that a snapshot returns never come from a digest.
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

// nameTerm returns the term of one name that a subject may reach, and allTerm that of a subject that may reach all. The length before the subject
// distinguishes ("a", "bc") from ("ab", "c").
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
