# Copyright The Clusterhub Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Rewrites the markers of a Go file of API types for validation-gen, which reads other markers than openapi-gen: a bound is written once, as
# +k8s:validation:maxLength=N, and read by both. Types of other modules are opaque: handwritten functions validate them.

# A marker of a comment is printed with the field that it belongs to.
/^[\t ]*\/\/ \+(optional|k8s:validation:|listType=|listMapKey=)/ {
	markers[++n] = $0
	next
}

# The generator requires fields that have defaults. Objects that a program validates need not have them.
/^\t\/\/ \+default=/ { next }

# Declares the presence of each pointer, which the generated code dereferences otherwise. The generator rejects a presence of structs, and this program
# cannot distinguish structs from named strings: fields of a named type have one only with a bound that requires it.
function print_markers(    i, m, optional, presence) {
	presence = $0 ~ /^\t[A-Za-z0-9]+ +(\*|\[\]|map\[|string |bool |u?int[0-9]* |float)/
	for (i = 1; i <= n; i++) {
		optional = optional || markers[i] ~ /\+optional$/
		presence = presence || markers[i] ~ /:min(imum|Length|Items)=[1-9]/
	}
	if (n && presence && optional)
		print "\t// +k8s:optional"
	if ($0 ~ /^\t[A-Za-z0-9]+ +\*/ && !optional)
		print "\t// +k8s:required"
	for (i = 1; i <= n; i++) {
		m = markers[i]
		if (m ~ /\+optional$/)
			continue
		sub(/\+list/, "+k8s:list", m)
		if (match(m, /:properties:[A-Za-z]+:/))
			sub(/\+k8s:validation:properties:[A-Za-z]+/, "+k8s:subfield(" substr(m, RSTART + 12, RLENGTH - 13) ")=+k8s:validation", m)
		if (!optional && m ~ /:minLength=1$/)
			sub(/\+k8s:validation:minLength=1$/, "+k8s:required", m)
		sub(/\+k8s:validation:items:/, "+k8s:eachVal=+k8s:", m)
		sub(/\+k8s:validation:/, "+k8s:", m)
		if (m !~ /\+k8s:(pattern|enum)/)
			print m
	}
	n = 0
}

# A field of a type of another module.
/^\t([A-Za-z0-9]+ +)?(\[\]|map\[[^]]*\])?\*?(duration|metav1|runtime|rbacv1|corev1|resource|types)\.[A-Za-z]+ +`json:/ {
	print_markers()
	print /\](duration|metav1|runtime|rbacv1|corev1|resource|types)\./ ? "\t// +k8s:eachVal=+k8s:opaqueType" : "\t// +k8s:opaqueType"
	print
	next
}

{
	if ($0 !~ /^[\t ]*\/\//)
		print_markers()
	print
}
