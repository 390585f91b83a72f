// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title RoleVault
/// @notice Ether vault with roles: ADMIN manages roles, PAYER pays out, AUDITOR confirms the monthly balance.
contract RoleVault {
    uint8 public constant ADMIN = 1;
    uint8 public constant PAYER = 2;
    uint8 public constant AUDITOR = 4;

    mapping(address => uint8) public rolesOf;
    uint256 public lastConfirmedBalance;
    uint256 public lastConfirmedAt;

    event RoleGranted(address indexed account, uint8 role);
    event RoleRevoked(address indexed account, uint8 role);
    event Paid(address indexed to, uint256 amount);

    error MissingRole(address account);

    constructor() payable {
        rolesOf[msg.sender] = ADMIN;
    }

    receive() external payable {}

    /// @notice Gives an account a role.
    function grantRole(address account, uint8 role) external {
        require(role == ADMIN || role == PAYER || role == AUDITOR, "unknown role");
        if (rolesOf[msg.sender] == 0) revert MissingRole(msg.sender);
        rolesOf[account] |= role;
        emit RoleGranted(account, role);
    }

    /// @notice Takes a role away.
    function revokeRole(address account, uint8 role) external {
        if (rolesOf[msg.sender] & ADMIN == 0) revert MissingRole(msg.sender);
        rolesOf[account] &= ~role;
        emit RoleRevoked(account, role);
    }

    /// @notice Pays ether out.
    function pay(address payable to, uint256 amount) external {
        if (rolesOf[msg.sender] & PAYER == 0) revert MissingRole(msg.sender);
        emit Paid(to, amount);
        (bool sent, ) = to.call{value: amount}("");
        require(sent, "transfer failed");
    }

    /// @notice Confirms the balance, at most once in four weeks.
    function confirmBalance() external {
        if (rolesOf[msg.sender] & AUDITOR == 0) revert MissingRole(msg.sender);
        require(block.timestamp >= lastConfirmedAt + 28 days, "confirmed already");
        lastConfirmedAt = block.timestamp;
        lastConfirmedBalance = address(this).balance;
    }
}
