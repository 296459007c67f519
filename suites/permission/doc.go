// Package permission holds the behaviors of authorization: which permission each kind of deletion requires, and which permissions do
// not suffice. Specs run as users with dedicated Roles.
package permission
